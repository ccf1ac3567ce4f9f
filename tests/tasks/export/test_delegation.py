"""What an execution has to do at least: MACs as PyTorch counts them, and the bytes that it reads."""

from typing import Any

import pytest

from tasks.export.exported import Export
from tasks.export.lowering.delegation import count_macs, count_read_bytes

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Mixed(torch.nn.Module):  # type: ignore[misc]
    """Convolutions, a linear layer, attention of eight heads and a recurrent layer, over images (1, 3, 8, 8)."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        same = nn.Conv2d(32, 32, 3, groups=8, padding="same")
        self.convolutions = nn.Sequential(nn.Conv2d(3, 32, 3), same, nn.ConvTranspose2d(32, 16, 2, stride=2))
        self.linear = nn.Linear(16, 64)
        self.recurrent = nn.LSTM(64, 8, num_layers=2)

    def forward(self, images: Any) -> Any:
        rows = self.linear(self.convolutions(images).flatten(2).transpose(1, 2))
        heads = rows.unflatten(-1, (8, 8)).transpose(1, 2)
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads) @ torch.ones(8, 8)
        return self.recurrent(attended.transpose(1, 2).flatten(2)[:, :5])[0]


class Looking(torch.nn.Module):  # type: ignore[misc]
    """Looks up rows of a table of 100 x 6, and adds them to a state of 6."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(100, 6)
        self.register_buffer("state", torch.zeros(6))

    def forward(self, words: Any) -> Any:
        self.state.add_(self.table(words).sum(0))
        return self.state + self.state


def test_macs_are_half_of_the_operations_that_pytorch_counts() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    module, images = Mixed(), torch.rand(1, 3, 8, 8)
    # Whatever is one operator, such as a recurrent layer of mkldnn, PyTorch would not count.
    apart = torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH)
    with FlopCounterMode(display=False) as counter, apart[0], apart[1]:
        module(images)
    program = torch.export.export(module, (images,)).run_decompositions()
    assert count_macs(program) == counter.get_total_flops() / 2 > 0


def test_a_dynamic_size_has_no_number_of_macs_and_neither_has_a_branch() -> None:
    rows = torch.rand(4, 2)
    program = torch.export.export(torch.nn.Linear(2, 3), (rows,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    assert count_macs(program.run_decompositions()) is None

    class Branching(torch.nn.Module):  # type: ignore[misc]
        def forward(self, rows: Any) -> Any:
            return torch.cond(rows.sum() > 0, lambda rows: rows * 2, lambda rows: rows + 1, (rows,))

    assert count_macs(torch.export.export(Branching(), (rows,)).run_decompositions()) is None


@pytest.mark.thorough  # it imports the exporter
def test_of_an_embedding_only_the_rows_that_are_looked_up_are_read_and_state_is_read_once() -> None:
    from executorch.exir import to_edge

    with torch.no_grad():
        edge = to_edge(torch.export.export(Looking(), (torch.tensor([3, 5, 7]),)))
    assert count_read_bytes(edge.exported_program()) == 4 * (3 * 6 + 6)


def test_what_an_export_reads_are_its_weights_as_the_recipe_stores_them(toys: dict[str, Export]) -> None:
    assert len({export.macs for export in toys.values()}) == 1
    read = {precision: export.read_bytes or 0 for precision, export in toys.items()}
    assert read["int4_dynamic"] < read["int8_dynamic"] < read["fp32"]
    assert read["int8_static"] < read["fp16"] < 0.6 * read["fp32"]
    for precision, export in toys.items():
        assert 0.5 * export.pte_bytes < read[precision] < export.pte_bytes
