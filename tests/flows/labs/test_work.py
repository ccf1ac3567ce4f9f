"""What a lab found is reported, whatever ends at whatever moment."""

from pathlib import Path

import pytest

from flows.device.job import DeviceTally
from flows.labs import work
from flows.labs.mailbox import Mailbox
from flows.labs.messages import Order, Report
from tasks.store.store import open_store
from tasks.store.var import Var
from tests.fixtures.plans import NIGHT, a_spec


def test_a_device_that_ends_while_a_report_is_made_is_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a lab whose last device ends just after the report about it was made
    store = open_store(str(tmp_path / "bundles"), Var(tmp_path / "lab"))
    mailbox = Mailbox(store.shelf, f"{NIGHT.sweep_id}/berlin-1")
    mailbox.write_order(Order(site="berlin", spec=a_spec(), sweep=NIGHT, devices=[]))
    working = work.Work(mailbox, store, Var(tmp_path / "lab"))
    make_report, made = working._newest_report, []

    def made_too_early(beat: int) -> Report:
        made.append(make_report(beat))
        working._tallies["far"] = DeviceTally("far", succeeded=3)
        working._ended.set()
        return made[-1]

    monkeypatch.setattr(working, "_newest_report", made_too_early)
    monkeypatch.setattr(work, "POLL_S", 0.01)
    # when the lab reports until its end
    working._report()
    # then the farm reads of that device
    assert made[0].tallies == {}
    assert mailbox.report().tallies["far"].succeeded == 3
