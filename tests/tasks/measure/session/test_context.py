"""What a runner states about SME and SME2 is believed only if it is an answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from devices.errors import OutputTooLong
from devices.ondevice.facts import Facts
from tasks.measure.session.context import add_runner_facts, runner_command
from tests.fixtures.stand_in import a_context, a_farm_context, a_session


@pytest.mark.fault
@pytest.mark.parametrize(
    ("what", "script", "answer"),
    [
        ("an answer", 'echo \'{"sme_hardware": true, "sme2_hardware": false}\'', (True, False)),
        ("a part of an answer", "echo '{\"sme2_hardware\": true}'", (None, None)),
        ("text instead of a flag", 'echo \'{"sme2_hardware": "yes"}\'', (None, None)),
        ("100,000 brackets", "head -c 100000 /dev/zero | tr '\\0' '['", (None, None)),
        ("a lone surrogate", 'echo \'{"sme2_hardware": true, "x": "\\ud800"}\'', (None, None)),
        ("nothing", "true", (None, None)),
    ],
)
def test_an_invalid_version_leaves_sme2_unknown(
    tmp_path: Path, what: str, script: str, answer: tuple[bool | None, bool | None]
) -> None:
    context = a_farm_context(tmp_path, f"{script}\n")
    facts = add_runner_facts(context.runner, context.device, context.spec, Facts(os="linux"))
    assert (facts.sme, facts.sme2) == answer


@pytest.mark.fault
def test_a_runner_that_prints_its_version_without_end_is_killed(tmp_path: Path) -> None:
    context = a_farm_context(tmp_path, "exec cat /dev/zero\n")
    context.device.output_limit_bytes = 1 << 20
    with pytest.raises(OutputTooLong, match=r"^local: `.*` printed more than its limit of 1048576 bytes"):
        add_runner_facts(context.runner, context.device, context.spec, context.facts)


def test_without_an_answer_it_stays_as_the_system_reports_it(tmp_path: Path) -> None:
    context = a_farm_context(tmp_path, "true\n")
    facts = Facts(os="linux", sme=True, sme2=True)
    found = add_runner_facts(context.runner, context.device, context.spec, facts)
    assert (found.sme, found.sme2) == (True, True)


def test_a_registered_runner_gets_the_flags_of_the_stock_runner_only(tmp_path: Path) -> None:
    context = a_context(tmp_path, "")
    kinds = (context, replace(context, runner=replace(context.runner, kind="wheel")))
    registered, farm = ({word.partition("=")[0] for word in runner_command(a_session(), each, "/f")} for each in kinds)
    assert {"--model_path", "--num_executions", "--cpu_threads", "--etdump_path", "--output_file"} <= registered
    assert farm - registered == {"--stats_path", "--sme2", "--untraced_executions"}


def test_a_registered_runner_and_one_that_a_device_is_too_old_for_are_not_started(tmp_path: Path) -> None:
    context = a_farm_context(tmp_path, 'echo \'{"sme_hardware": true, "sme2_hardware": true}\'\n')
    facts = Facts(os="linux", glibc="2.17")
    registered, new = replace(context.runner, kind="registered"), replace(context.runner, needs={"glibc": "2.99"})
    assert [add_runner_facts(runner, context.device, context.spec, facts).sme2 for runner in (registered, new)] == [
        None
    ] * 2
    assert not (tmp_path / "root").exists()
