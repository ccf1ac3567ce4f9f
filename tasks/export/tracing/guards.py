"""Where a model restricts a dynamic size: torch's error names only the `Dim`; its log is written at the user's line."""

import inspect
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tasks.export.tracing.sizes import find_dim

_LOGGER = "torch.fx.experimental.symbolic_shapes"
_SIZE = r"L\['(\w+)'\]\.size\(\)\[(\d+)\]"
_RESTRICTED = re.compile(rf"You marked (\S+) as dynamic|values of (?:\S+ = )?({_SIZE})")


@contextmanager
def noted_guards(module: Any, dynamic_shapes: Any) -> Iterator[None]:
    """Add to an error of torch.export in the block which dimension of which input it is about, and the stack there.

    refusals.csv and `explain_error` read these notes.
    """
    logger, guards = logging.getLogger(_LOGGER), _Guards()
    before = logger.level, logger.handlers
    logger.setLevel(logging.INFO)
    logger.handlers = [guards]
    try:
        yield
    except Exception as error:
        if match := _RESTRICTED.search(str(error)):
            for note in guards.describe(match[1] or match[2], module, dynamic_shapes):
                error.add_note(note)
        raise
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]


class _Guards(logging.Handler):
    """Collects the dynamic sizes by their symbols, and the stack where torch restricts each."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, str] = {}
        self.stacks: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text, values = str(record.msg), [str(each) for each in record.args or ()]
        if text.startswith("create_symbol"):  # of values[0] for the size values[2]
            self.sizes[values[0]] = values[2]
        elif "[guard added]" in text:  # the condition values[1]
            for symbol in re.findall(r"\bs\d+\b", values[1]):
                self.stacks.setdefault(symbol, "".join(traceback.format_stack()))
        elif text.startswith("set_replacement") and values[1].isdigit():  # values[0] can be only this number
            self.stacks[values[0]] = "".join(traceback.format_stack())

    def describe(self, name: str, module: Any, dynamic_shapes: Any) -> Iterator[str]:
        """Yield the place of the size with this name, that of a `Dim` or torch's, and the stack where it is needed."""
        inputs = list(inspect.signature(module.forward).parameters)
        for symbol, size in self.sizes.items():
            if (match := re.fullmatch(_SIZE, size)) and match[1] in inputs:
                dimension = int(match[2])
                dim = find_dim(dynamic_shapes, inputs.index(match[1]), match[1], dimension)
                if name in (size, getattr(dim, "__name__", None)):
                    yield f"dimension {dimension} of the input `{match[1]}`"
                    yield self.stacks.get(symbol, "")
                    return
