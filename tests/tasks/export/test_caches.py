"""Key-value caches: every way to write one runs as in eager PyTorch; what cannot run is refused by its export."""

from dataclasses import asdict
from pathlib import Path

import pytest

from tasks.export.exported import ExportError
from tasks.export.program import read_program
from tests.fixtures.exports import exported_cases, max_error

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
MODELS = '''
import torch

ROOM = 8
CACHES = ("assigned", "of_batch", "many", "copied", "scattered", "ring", "sliced", "narrowed", "shifted", "counted")

class Caches(torch.nn.Module):
    """Writes `values` (1, 2, n, 4) at `positions` (n,) of a cache for each idiom, and returns all caches."""

    def __init__(self):
        super().__init__()
        for name in CACHES:
            self.register_buffer(name, torch.zeros(1, 2, ROOM, 4))
        self.counted += 3

    def forward(self, values, positions):
        count = positions.shape[0]
        start = positions[0].item()
        torch._check(start >= 0)
        torch._check(start + count <= ROOM)
        self.assigned[:, :, positions] = values
        self.of_batch[0, :, positions] = values[0]
        self.many[torch.zeros(1, 1, 1, dtype=torch.long), torch.arange(2)[None, :, None], positions] = values
        self.copied.index_copy_(2, positions, values)
        self.scattered.scatter_(2, positions[None, None, :, None].expand_as(values), values)
        self.ring[:, :, positions % 3] = values
        self.sliced[:, :, 2 : 2 + count] = values
        self.narrowed.narrow(2, start, count).copy_(values)
        self.shifted.copy_(torch.cat([self.shifted[:, :, count:], values], 2))
        self.counted.add_(1)
        return tuple(getattr(self, name) * 1.0 for name in CACHES)

def caches():
    module = Caches()
    prompt = torch.rand(1, 2, 3, 4), torch.arange(3)
    token = torch.rand(1, 2, 1, 4), torch.tensor([3])
    setup = {"method": "prefill", "inputs": prompt}
    return {"methods": {
        "prefill": {"module": module, "inputs": prompt},
        "decode": {"module": module, "inputs": token, "setup": setup},
    }}

class FromTheEnd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 2, ROOM, 4))

    def forward(self, values, positions):
        self.cache[:, :, positions - ROOM] = values
        return self.cache * 1.0

def from_the_end():
    return FromTheEnd(), (torch.rand(1, 2, 1, 4), torch.tensor([3]))

class Cut(torch.nn.Module):
    def forward(self, values):
        return torch.nn.functional.pad(values, (-1, 0))

def cut():
    return Cut(), (torch.rand(4, 4),)
'''


def test_every_way_to_write_a_cache_runs_here_as_in_eager_pytorch(exports: Path) -> None:
    # given a program of two methods that share the caches
    prefill, decode = exported_cases("model:caches", "fp32", exports)
    # then it was executed after its export, the second method after the first
    assert prefill.trial == decode.trial == "succeeded"
    for export in (prefill, decode):
        assert max_error(export.folder, asdict(export.case)) == 0, export.model
    # and an assignment changes its cache, without a copy of the cache
    for method in read_program(decode.pte):
        called = [call.operator for call in method.calls]
        assert (called.count("aten::index_put_"), called.count("aten::index_put.out")) == (3, 2), method.name
    # and is listed under the name of what runs
    listed = {entry["operator"]: entry["count"] for entry in decode.portable}
    assert (listed["aten.index_put_.default"], listed["aten.index_put.default"]) == (3, 2)


def test_a_write_that_fails_here_in_place_is_exported_as_a_copy(exports: Path) -> None:
    [export] = exported_cases("model:from_the_end", "fp32", exports)
    assert max_error(export.folder, asdict(export.case)) == 0
    [note] = export.notes
    assert "write_in_place: " in note
    assert "forward fails when this machine executes it: aten::index_put_: Index -5" in note


def test_a_program_that_fails_here_is_not_exported_and_the_runtimes_cause_is_named(exports: Path) -> None:
    with pytest.raises(ExportError, match="forward fails when this machine executes it: aten::constant_pad_nd"):
        exported_cases("model:cut", "fp32", exports)
    assert not list(exports.glob("*/export.json"))
