"""The calls in an ETDump are those of the program that was to be executed."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.etdump.event_names import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.export.program import Call, ProgramMethod
from tasks.measure.session.program_calls import other_program

NOTHING = np.zeros(0, np.int64)
METHOD = ProgramMethod("forward", (), (), (Call(0, 1, delegate="XnnpackBackend"), Call(0, 2, operator="aten::add.out")))
SHOWN = [
    ("delegate_call", "DELEGATE_CALL", 1),
    ("operator_call", "OPERATOR_CALL", 2),
    ("portable", "native_call_add.out", 2),
]


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (SHOWN, None),
        (
            [("delegate_call", "DELEGATE_CALL", 2), *SHOWN],
            "the ETDump shows a call of a delegate, DELEGATE_CALL at instruction 2 of chain 0, where the program calls "
            "aten::add.out",
        ),
        (
            [*SHOWN, ("operator_call", "OPERATOR_CALL", 3)],
            "the ETDump shows a call of an operator, OPERATOR_CALL at instruction 3 of chain 0, where the program "
            "calls nothing",
        ),
        (
            [*SHOWN[:2], ("portable", "native_call_sub.out", 2)],
            "the ETDump shows operator native_call_sub.out at instruction 2 of chain 0, where the program calls "
            "aten::add.out",
        ),
        (
            SHOWN[:1],
            "the program calls aten::add.out at instruction 2 of chain 0, and the ETDump shows no call there",
        ),
    ],
    ids=["honest", "another kind", "a call too many", "another operator", "a call too few"],
)
def test_operators_that_are_not_the_program_s_are_told(shown: list[tuple[str, str, int]], cause: str | None) -> None:
    tree = tuple(TreeNode(0, kind, name, 0, place, OperatorName(name)) for kind, name, place in shown)
    runs = Runs(NOTHING, NOTHING, tree, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    assert other_program(runs, METHOD) == cause
    # and a program with branches may leave out calls
    left = other_program(runs, replace(METHOD, has_branches=True))
    assert left == (None if shown == SHOWN[:1] else cause)
