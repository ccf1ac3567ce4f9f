"""The steps of an export: each is steps when it begins, and once more when it lasts."""

import os
import time
from multiprocessing import Pipe

import pytest

from tasks.export.process import run
from tasks.export.process.child import ExportOutcome
from tasks.export.process.run import follow
from tests.fixtures.waiting import ENOUGH_S


def test_each_step_is_reported_at_once_and_a_long_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a process that traces, lowers for long, and ends with its answer
    monkeypatch.setattr(run, "LONG_S", 0.01)
    receiver, sender = Pipe(duplex=False)
    sentinel, end = os.pipe()
    steps: list[tuple[str, bool]] = []

    def tell(step: str, is_long: bool) -> None:
        steps.append((step, is_long))
        if is_long:
            sender.send(ExportOutcome(folder="key"))
            sender.close()
            os.close(end)

    for step in ("tracing forward", "lowering"):
        sender.send(step)
    # when it is followed
    answer, has_ended = follow(sentinel, receiver, ENOUGH_S, tell)
    os.close(sentinel)
    # then only the step that lasted was steps twice
    assert (answer, has_ended) == (ExportOutcome(folder="key"), True)
    assert steps == [("tracing forward", False), ("lowering", False), ("lowering", True)]


def test_the_step_at_the_deadline_is_returned() -> None:
    receiver, sender = Pipe(duplex=False)
    sentinel, end = os.pipe()
    sender.send("lowering")
    begun = time.monotonic()
    # when a process does not end
    answer, has_ended = follow(sentinel, receiver, 0.05, lambda *_: None)
    for file in (sentinel, end):
        os.close(file)
    # then it is followed until its deadline
    assert (answer, has_ended) == ("lowering", False)
    assert time.monotonic() - begun >= 0.05
