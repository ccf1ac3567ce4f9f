"""How tests are handed out to the workers of a test run."""

from collections import OrderedDict

from tests.conftest import ByFileOrLab


def test_what_a_worker_did_before_it_crashed_is_not_handed_out_again() -> None:
    # given a worker that has done one file and crashes in the second test of another
    scheduler = object.__new__(ByFileOrLab)
    scheduler.workqueue = OrderedDict()
    done, begun = {"first::a": True}, {"second::b": True, "second::c": False}
    scheduler.assigned_work = OrderedDict(worker=OrderedDict(first=done, second=begun))
    # when it is removed
    crashed = scheduler.remove_node("worker")
    # then only the file that it had begun is handed out
    assert crashed == "second::c"
    assert list(scheduler.workqueue) == ["second"]
