"""The kinds of failure: one list, in code and in docs; what a runner prints is classified and never guessed."""

import re
import signal
from enum import IntEnum

import pytest

from devices import errors
from tasks.bundle.failure_kinds import FAILURE_KINDS, OF_DEVICE, printed_kind, remedy, signal_name
from tasks.measure.session.record import error_code
from tests.fixtures.paths import ROOT

LOAD = "executor_runner: cannot load method 'forward' of /data/x.pte: "
FIRST = "executor_runner: /data/x.pte is not a program that can be loaded: "


def test_every_kind_that_a_session_may_end_with_is_in_the_list_with_a_remedy_of_its_own() -> None:
    # given the kinds that sessions are recorded with, and those of errors of devices
    folders = ("tasks/measure/session", "tasks/maintain/kit", "flows/device")
    sources = [path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).glob("*.py")]
    kinds = {kind for text in sources for kind in re.findall(r'"(?:failed|invalid)",\s*"(\w+)"', text)}
    kinds |= {kind for text in sources for kind in re.findall(r'\("(\w+)", (?:cause|str\(error\))\)', text)}
    assert len(kinds) > 20
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    kinds |= {error_code(each.__new__(each)) for each in classes if issubclass(each, errors.DeviceError)}
    # then none is missing, nor answered with what an unknown one is
    assert kinds - FAILURE_KINDS.keys() == {"invalid"}  # of `("failed", "invalid")`
    assert {kind for kind in FAILURE_KINDS if remedy(kind) == remedy(None)} == set()
    assert {"device_lost", "no_space_on_device"} < OF_DEVICE


@pytest.mark.parametrize(
    ("printed", "kind", "names"),
    [
        # given what the farm's runner printed for broken programs and without memory
        (f"{LOAD}Missing operators: a::odd.out, a::even.out (Error::OperatorMissing)", "missing_operator", 2),
        (f"{LOAD}kernel 'a::odd.out' not found.", "missing_operator", 1),
        (f"{LOAD}Backend VulkanBackend is not registered. (Error::NotFound)", "no_backend", 1),
        (f"{LOAD}Backend OpenvinoBackend is not available. (Error::NotFound)", "no_backend", 1),
        (f"{LOAD}OpenVINO runtime not found (dlopen failed: libtbb.so.12: X). (Error::NotFound)", "no_backend", 0),
        (f"{LOAD}OpenVINO cannot import a part of the model: stoll (Error::Internal)", "damaged_program", 0),
        (f"{LOAD}OpenVINO cannot import a part of the model: std::bad_alloc (Error::X)", "out_of_memory", 0),
        (f"{FIRST}File size is too small. Expected size is 4 (Error::X)", "damaged_program", 0),
        (f"{FIRST}Program identifier 'BP08' != expected 'ET12' (Error::InvalidProgram)", "damaged_program", 0),
        (f"{LOAD}FlatBuffer verification failed; data may be truncated or corrupt (Error::X)", "damaged_program", 0),
        (f"{LOAD}XNN Runtime creation failed with code: xnn_status_out_of_memory", "out_of_memory", 0),
        (f"{LOAD}Reading from x at offset 2048: et_aligned_alloc(134217728, 16) failed", "out_of_memory", 0),
        (f"{LOAD}reserve_space mmap 5165056 bytes failed (errno=12) (Error::Internal)", "out_of_memory", 0),
        (f"{LOAD}reserve_space ftruncate to 4096 failed (errno=28) (Error::Internal)", "no_space_on_device", 0),
        (f"{FIRST}et_aligned_alloc(134217728, 16) failed (Error::MemoryAllocationFailed)", "out_of_memory", 0),
        ("executor_runner: std::bad_alloc", "out_of_memory", 0),
        (f"{FIRST}File /data/x.pte (off=0x0): mlock(0x7efe51244000, 64) failed: X (1) (Error::X)", "no_option", 0),
        ("executor_runner: --backend_options: XnnpackBackend refuses its value of x: y (Error::X)", "no_option", 0),
        ("executor_runner: unknown flag '--backend_options=XnnpackBackend:x=1'; see --help", "no_option", 0),
        # and the stock runner
        ("E 00:00:00.1 method.cpp:9] Missing operator: [0] a::x.out\nstatus 0x14", "missing_operator", 1),
        ("F 00:00:00.1 executorch:main.cpp:9] Loading of method forward failed with status 0x21", "out_of_memory", 0),
        # and what identifies nothing
        ("executor_runner: method 'forward' failed: Internal Error: 0x210", None, 0),
        ("a model of mine is missing an operator; bad alloc", None, 0),
    ],
)  # fmt: skip
def test_what_a_runner_prints_identifies_the_kind_and_its_names(printed: str, kind: str | None, names: int) -> None:
    identified = printed_kind(printed.splitlines())
    assert (identified and identified[0], len(identified[1]) if identified else 0) == (kind, names)


def test_a_signal_has_the_name_that_it_has_on_its_device_and_not_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a machine whose signals have other numbers than both systems
    monkeypatch.setattr(signal, "Signals", IntEnum("Signals", {"SIGSEGV": 11, "SIGODD": 7, "SIGODDER": 10}))
    assert [signal_name(number, "macos") for number in (10, 11, 99)] == ["SIGBUS", "SIGSEGV", "signal 99"]
    assert [signal_name(number, "linux") for number in (7, 10, 11)] == ["SIGBUS", "SIGUSR1", "SIGSEGV"]
