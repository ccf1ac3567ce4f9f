"""Prepare the server that exports are forked from: multiprocessing's fork server imports this file before it forks.

Never import it elsewhere. It starts no thread, so that a fork stays safe.
"""

import contextlib
import gc
import importlib
import logging
import os
import sys
from multiprocessing import spawn
from typing import Any

from tasks.export import used
from tasks.export.process import warm
from tasks.export.process.child import SERVER_LOG
from tasks.export.process.descendants import adopt_orphans

# What exports import: for a small model, that takes longer than the export itself.
_IMPORTED = (
    "torch",
    "torch.export._trace",
    "executorch.exir",
    "executorch.devtools.etrecord",
    "executorch.backends.xnnpack.partition.xnnpack_partitioner",
    "executorch.backends.xnnpack.quantizer.xnnpack_quantizer",
    "torchao.quantization.pt2e.quantize_pt2e",
    "transformers.modeling_utils",
)
# Elsewhere each export imports them itself: macOS's own libraries do not support a fork of a process that uses them.
_CAN_FORK_TORCH = sys.platform == "linux"


def _prepare() -> None:
    log = os.open(os.environ[SERVER_LOG], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    adopt_orphans()
    # An export must not import the program that started the farm, as multiprocessing's processes do.
    for name in ("_fixup_main_from_name", "_fixup_main_from_path"):
        setattr(spawn, name, _import_nothing)
    used.loaded_before_exports.update(sys.modules)  # what is loaded from here on counts as used by every export
    if _CAN_FORK_TORCH:
        _import_all()


def _import_nothing(_main: Any) -> None:
    """Leave `__main__` as it is."""


def _import_all() -> None:
    """Import what exports need; a part that is missing is left to the export that needs it."""
    gc.disable()
    for name in _IMPORTED:
        try:
            importlib.import_module(name)
        except Exception:
            logging.exception("%s cannot be imported", name)
    with contextlib.suppress(ImportError):  # another version of executorch computes them in every export
        warm.compute_patterns()
    gc.enable()
    gc.freeze()  # a collection in a child would otherwise copy all pages of these modules


_prepare()
