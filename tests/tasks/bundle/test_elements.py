"""Elements of files, of which numpy has no bfloat16."""

from pathlib import Path

import numpy as np
import pytest

from tasks.bundle.elements import element_bytes, elements_at, is_floating, read_elements, to_bytes

VALUES = np.array([1.0, -2.5, 0.0, 3.140625, np.inf])


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float16", 2), ("float32", 4), ("float64", 8)])
def test_elements_are_read_as_written_in_blocks_and_by_position(dtype: str, size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(to_bytes(VALUES, dtype))
    assert path.stat().st_size == size * len(VALUES) == element_bytes(dtype) * len(VALUES)
    with path.open("rb") as stream:
        blocks = [read_elements(stream, dtype, 2), read_elements(stream, dtype)]
    assert np.array_equal(np.concatenate(blocks), VALUES)
    assert np.array_equal(elements_at(path, dtype, np.array([0, 3])), VALUES[[0, 3]])
    assert is_floating(dtype)
    assert not is_floating("int64")
