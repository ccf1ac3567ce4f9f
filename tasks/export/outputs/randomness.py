"""Find what draws random numbers in a model in evaluation mode: its outputs cannot be compared with anything."""

import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tasks.export.exported import first_line
from tasks.export.lowering.passes import largest_distance
from tasks.export.references import CaseInputs, call_once
from tasks.export.user_code import user_line

logger = logging.getLogger(__name__)
SEARCH = "the search for random numbers"
"""Its name where an export is without it."""
_TOLERANCE = 1e-4
"""Largest difference of two executions, relative to the largest value; threads may add numbers in another order."""


def find_random(modules: Mapping[str, Any], cases: Sequence[CaseInputs], float_type: str) -> list[dict[str, Any]]:
    """Return {method, module, operator, line, cause} of each operator that draws random numbers, once for each line.

    Each method is executed twice with the inputs of its first case and different seeds; one with equal outputs is not
    random. Module, operator and line are None if something else differs, such as Python's own random numbers, and if
    the search fails: `cause` then has its error, which is None otherwise. Raises only what the first execution raises.
    """
    first = {case.method.program_method: case for case in reversed(cases)}
    return [
        {"method": method, **draw}
        for method, module in modules.items()
        if method in first
        for draw in _list_draws(module, modules, first[method], float_type)
    ]


def draws_in(method: str, draws: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return {module, operator, line} of what draws in a method; None if the search in it failed."""
    of_method = [draw for draw in draws if draw["method"] == method]
    if any(draw["cause"] for draw in of_method):
        return None
    return [{key: draw[key] for key in ("module", "operator", "line")} for draw in of_method]


def _list_draws(
    module: Any, modules: Mapping[str, Any], case: CaseInputs, float_type: str
) -> Iterator[dict[str, str | None]]:
    """Yield {module, operator, line, cause} of what draws; nothing if two executions have equal outputs."""
    import torch

    draws: dict[tuple[str | None, ...], None] = {}
    cause = None
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        outputs = call_once(modules, case, float_type)
        try:
            torch.manual_seed(2)
            again = call_once(modules, case, float_type)
            if largest_distance(again, outputs, with_integers=True) <= _TOLERANCE:
                return
            with _recorded_draws(module, draws):
                call_once(modules, case, float_type)
        except Exception as error:
            logger.warning("%s failed", SEARCH, exc_info=True)
            draws, cause = {}, first_line(error)
    for path, operator, line in draws or {(None, None, None): None}:
        yield {"module": path, "operator": operator, "line": line, "cause": cause}


@contextmanager
def _recorded_draws(module: Any, draws: dict[tuple[str | None, ...], None]) -> Iterator[None]:
    """Add (path of the module, operator, line of the user's code) of each operator that draws during the block."""
    import torch
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
    from torch.utils._python_dispatch import TorchDispatchMode

    paths, stack = {part: path for path, part in module.named_modules()}, list[Any]()

    class Recorder(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            before = torch.get_rng_state()
            result = operator(*args, **(kwargs or {}))
            if not torch.equal(before, torch.get_rng_state()):
                frames = reversed(traceback.extract_stack())
                line = user_line((frame.filename, frame.lineno or 0) for frame in frames)
                path = paths.get(stack[-1]) if stack else None
                draws[path or None, str(operator), line] = None
            return result

    def leave(_part: Any, _inputs: Any, _outputs: Any) -> None:  # what a hook returns replaces the outputs
        stack.pop()

    hooks = (
        register_module_forward_pre_hook(lambda part, _inputs: stack.append(part)),
        register_module_forward_hook(leave),
    )
    try:
        with Recorder():
            yield
    finally:
        for hook in hooks:
            hook.remove()
