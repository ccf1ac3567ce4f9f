"""How tests are handed out to the workers of a test run."""

from collections import OrderedDict

from tests.conftest import ByFileOrLab


def test_only_what_a_crashed_worker_has_left_is_handed_out_again() -> None:
    # given a worker that has done one file and crashes in the second test of another
    scheduler = object.__new__(ByFileOrLab)
    scheduler.workqueue = OrderedDict()
    done, begun = {"first::a": True}, {"second::b": True, "second::c": False, "second::d": False}
    scheduler.assigned_work = OrderedDict(worker=OrderedDict(first=done, second=begun))
    # when it is removed
    crashed = scheduler.remove_node("worker")
    # then the test that it was in is named, and only what comes after it is handed out
    assert crashed == "second::c"
    assert scheduler.workqueue == {"second": {"second::b": True, "second::c": True, "second::d": False}}
