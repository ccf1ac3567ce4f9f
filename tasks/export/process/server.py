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

from tasks.export.process import dependencies
from tasks.export.process.child import SERVER_LOG
from tasks.export.process.sandbox import adopt_orphans

# Modules of the farm that an export imports when it has begun: its model does not use them.
_OF_FARM = (
    "tasks.export.lowering.layer_probes", "tasks.export.lowering.lower", "tasks.export.outputs.samples",
    "tasks.export.program",
)  # fmt: skip
# Imports of exports: for a small model, they take longer than the export itself.
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


def _prepare() -> None:
    """Redirect the server's output to its log, and import what exports need, so that they do not each import it."""
    log = os.open(os.environ[SERVER_LOG], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    adopt_orphans()
    # An export must not import the program that started the farm, as multiprocessing's processes do.
    for name in ("_fixup_main_from_name", "_fixup_main_from_path"):
        setattr(spawn, name, lambda _main: None)
    for name in _OF_FARM:
        importlib.import_module(name)
    # What is loaded from here on counts as used by every export.
    dependencies.loaded_before_exports.update(sys.modules)
    # Elsewhere each export imports them itself: macOS's libraries do not support a fork of a process that uses them.
    if sys.platform == "linux":
        gc.disable()
        for name in _IMPORTED:
            try:
                importlib.import_module(name)
            except Exception:  # an export that needs it reports the error
                logging.exception("%s cannot be imported", name)
        with contextlib.suppress(ImportError):  # another version of executorch computes them in every export
            _compute_patterns()
        gc.enable()
        gc.freeze()  # a collection in a child would otherwise copy all pages of these modules


def _compute_patterns() -> None:
    """Compute once, for all exports, the patterns that XNNPACK's passes look for: each would need 4 s for them."""
    import torch
    import tqdm

    # A child that was forked after torch has started threads waits for them permanently.
    interval, torch_threads = tqdm.tqdm.monitor_interval, torch.get_num_threads()
    tqdm.tqdm.monitor_interval = 0
    torch.set_num_threads(1)
    try:
        from executorch.backends.xnnpack.partition.graphs import bilinear_2d, sdpa

        bilinear_2d.get_graphs_dict()
        sdpa.get_graphs()
    finally:
        tqdm.tqdm.monitor_interval = interval
        torch.set_num_threads(torch_threads)


_prepare()
