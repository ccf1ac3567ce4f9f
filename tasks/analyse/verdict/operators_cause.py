"""What changed a latency, in a sentence: the operators that changed, or that all moved alike."""

from collections.abc import Iterator

from tasks.analyse.verdict.metrics import percent_change
from tasks.analyse.verdict.operators import OperatorVerdict, OperatorVerdicts

UNATTRIBUTED = "Unattributed"
"""The operator that stands for the time of no operator."""
_LEAST_PART_PERCENT = 20.0
_LEAST_COMMON = 0.01
_LEAST_VOTES = 3  # two operators are not enough to speak of all
_MOST_NAMED = 2
_CHANGED = ("regression", "suspected", "improvement")


def cause_of(found: OperatorVerdicts, *, total_changed: bool) -> str | None:
    """Name the operators behind a change: "`Convolution (NHWC, F32) IGEMM` +38.0 %, 92 % of the change".

    If the total did not change, name what is confirmed of operators: their part of the time is too small to move it.
    None if there is nothing to name.
    """
    operators = [each for each in found.operators if each.level == "operator"]
    causes = list(_of_total(found, operators) if total_changed else _beside_total(found, operators))
    return "; ".join(causes) or None


def _of_total(found: OperatorVerdicts, operators: list[OperatorVerdict]) -> Iterator[str]:
    """Yield what explains at least a fifth of the change: operators first, the largest part first."""
    changed = [each for each in operators if each.verdict in _CHANGED]
    parts: list[tuple[float, str]] = []
    for new, gone in _replaced(changed):
        changed = [each for each in changed if each not in (new, gone)]
        ratio = new.time_ns / (gone.baseline_ns * found.common)
        part = (new.part_percent or 0.0) + (gone.part_percent or 0.0)
        parts.append((part, f"{_name(new)} instead of {_name(gone)} {percent_change(ratio)}"))
    parts += [(each.part_percent or 0.0, _change(each)) for each in changed]
    named = sorted((each for each in parts if each[0] >= _LEAST_PART_PERCENT), reverse=True)[:_MOST_NAMED]
    yield from (f"{text}, {part:.0f} % of the change" for part, text in named)
    is_named = found.votes >= _LEAST_VOTES and abs(found.common - 1) >= _LEAST_COMMON
    if not is_named or (found.common_percent or 0.0) < _LEAST_PART_PERCENT:
        return
    alike = f"operators moved alike{' beside that' if named else ''}: {percent_change(found.common)}"
    if named:
        yield f"all {alike}, {found.common_percent:.0f} % of the change"
    else:
        yield f"{'most' if changed else 'all'} {alike}"


def _beside_total(found: OperatorVerdicts, operators: list[OperatorVerdict]) -> Iterator[str]:
    """Yield the confirmed changes of operators that did not change the total."""
    total_ns = sum(each.time_ns for each in operators)
    for each in [each for each in operators if each.verdict in ("regression", "improvement")][:_MOST_NAMED]:
        yield f"{_change(each)}, {100 * max(each.time_ns, each.baseline_ns) / total_ns:.0f} % of the time"


def _replaced(changed: list[OperatorVerdict]) -> Iterator[tuple[OperatorVerdict, OperatorVerdict]]:
    """Yield each operator that is the only new one of its category, with the only one of it that is gone."""
    for category in {each.category for each in changed}:
        of_category = [each for each in changed if each.category == category and each.ratio is None]
        new = [each for each in of_category if each.verdict == "regression"]
        gone = [each for each in of_category if each.verdict == "improvement"]
        if len(new) == len(gone) == 1:
            yield new[0], gone[0]


def _change(operator: OperatorVerdict) -> str:
    if operator.ratio is not None:
        return f"{_name(operator)} {percent_change(operator.ratio)}"
    if operator.verdict == "regression":
        return f"{_name(operator)} is new ({operator.time_ns / 1e6:.3g} ms)"
    return f"{_name(operator)} is gone ({operator.baseline_ns / 1e6:.3g} ms)"


def _name(operator: OperatorVerdict) -> str:
    return "time of no operator" if operator.name == UNATTRIBUTED else f"`{operator.name}`"
