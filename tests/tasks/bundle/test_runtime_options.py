"""What run-time options set in the runtime, which runners can set them, and when they had no effect."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle import runtime_options
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime_options import Options, runner_flags, unstated, without_effect
from tasks.measure.session.context import why_no_options
from tests.fixtures.stand_in import publish_stand_in

PACKED = (("load", "mmap"), ("packed_cache", "true"))
READ_BACK = {"weight_cache_enabled": True, "packed_cache_path": "packed.cache"}


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ((), []),
        ((("workspace", "per_model"),), ["--backend_options=XnnpackBackend:workspace_sharing_mode=1"]),
        (
            PACKED,
            [
                "--load_mode=mmap",
                "--backend_options=XnnpackBackend:weight_cache_enabled=true,packed_cache_path=packed.cache",
                "--cache_file=packed.cache",
            ],
        ),
        ((("some_key", "3"), ("unchecked", "true")), ["--backend_options=XnnpackBackend:some_key=3"]),
    ],
)
def test_options_are_flags_of_the_farms_runner(options: Options, flags: list[str]) -> None:
    assert runner_flags(options) == flags


def test_a_runner_that_cannot_set_an_option_is_named_with_what_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = publish_stand_in(tmp_path / "runners", "")
    assert why_no_options((), stock) is None
    assert "load=mmap: a registered runner has no flags for run-time options" in str(why_no_options(PACKED, stock))
    wheel = replace(stock, kind="wheel", versions={"executorch": "1.5.1"})
    assert why_no_options(PACKED, wheel) is None
    # given a key that the next version brings and a later one removes
    key = replace(runtime_options.SETTINGS[0], name="new", value="true", backend="B", key="k", since="1.6", until="1.8")
    monkeypatch.setattr(runtime_options, "SETTINGS", (key,))
    reasons = {
        version: why_no_options((("new", "true"),), replace(wheel, versions={"executorch": version}))
        for version in ("1.5.1", "1.6.0", "1.7.9", "1.8.0")
    }
    assert (reasons["1.6.0"], reasons["1.7.9"]) == (None, None)
    for version in ("1.5.1", "1.8.0"):
        assert reasons[version] == (
            f"new=true: B has k from 1.6 to before 1.8, but the runner is of ExecuTorch {version}"
        )


@pytest.mark.parametrize(
    ("stats", "cause"),
    [
        ({}, None),
        ({"load_mode": "file"}, "load=mmap had no effect: the runner loaded the program with file"),
        ({"weight_cache_enabled": False}, "packed_cache=true had no effect: XnnpackBackend returned false for weight_"),
        ({"weight_cache_enabled": None}, "packed_cache=true had no effect: XnnpackBackend returned none for weight_ca"),
        ({"cache_bytes": None}, "packed_cache=true had no effect: XnnpackBackend wrote no packed.cache at the first"),
        ({"cache_bytes": 0}, "packed_cache=true had no effect: XnnpackBackend wrote no packed.cache at the first"),
    ],
)
def test_an_option_without_effect_is_named_by_what_the_runner_reports(stats: dict[str, Any], cause: str | None) -> None:
    values = {key: stats.pop(key, value) for key, value in READ_BACK.items()}
    reported = {"load_mode": "mmap", "cache_bytes": 5, "backend_options": {"XnnpackBackend": values}} | stats
    found = without_effect(PACKED, Stats.model_validate(reported))
    assert found == cause if cause is None else str(found).startswith(cause)
    # and of an unchecked one, nothing is known
    assert without_effect((("some_key", "3"), ("unchecked", "true")), Stats.model_validate(reported)) is None


@pytest.mark.parametrize(
    ("options", "stats", "what"),
    [
        ((), {"load_mode": "file", "backend_options": {}}, None),
        ((), {}, None),
        ((), {"load_mode": "mmap"}, "load=mmap"),
        (PACKED, {"load_mode": "mmap", "backend_options": {"XnnpackBackend": READ_BACK}}, None),
        ((), {"backend_options": {"XnnpackBackend": {"some_key": None}}}, "some_key of XnnpackBackend"),
        ((("some_key", "3"),), {"backend_options": {"XnnpackBackend": {"some_key": None}}}, None),
    ],
)
def test_what_a_runner_set_and_no_option_states_is_named(
    options: Options, stats: dict[str, Any], what: str | None
) -> None:
    assert unstated(options, Stats.model_validate(stats)) == what
