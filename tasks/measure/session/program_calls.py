"""The calls in an ETDump must be those of the program that was to be executed."""

from tasks.etdump.tree import Runs
from tasks.export.program import Call, ProgramMethod

_KIND_IN_WORDS = {
    "delegate_call": "a call of a delegate,",
    "operator_call": "a call of an operator,",
    "portable": "operator",
}


def other_program(runs: Runs, method: ProgramMethod) -> str | None:
    """Return which call of the ETDump is not one of the program's, or the other way round; None if all agree."""
    calls = {(each.chain, each.instruction): each for each in method.calls}
    shown = [node for node in runs.tree if node.kind in _KIND_IN_WORDS]
    for node in shown:
        call = calls.get((node.chain_index, node.instruction_id))
        is_it = call is not None and (node.kind == "delegate_call") == (call.delegate is not None)
        if node.kind == "portable" and call is not None:
            is_it = str(call.operator).rpartition("::")[2] == node.name.removeprefix("native_call_")
        if not is_it:
            what = f"{_KIND_IN_WORDS[node.kind]} {node.name} at {_place(node.chain_index, node.instruction_id)}"
            return f"the ETDump shows {what}, where the program calls {_in_words(call)}"
    missing = sorted(calls.keys() - {(node.chain_index, node.instruction_id) for node in shown})
    if not missing or method.has_branches:
        return None
    return (
        f"the program calls {_in_words(calls[missing[0]])} at {_place(*missing[0])}, and the ETDump shows no call there"
    )


def _place(chain: int, instruction: int) -> str:
    return f"instruction {instruction} of chain {chain}"


def _in_words(call: Call | None) -> str:
    if call is None:
        return "nothing"
    return call.operator or f"a delegate of {call.delegate}"
