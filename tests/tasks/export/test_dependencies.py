"""The files that a model's factory reads are part of its key."""

import json
from pathlib import Path

import pytest

from tests.fixtures.command import run_python

PROGRAM = """
import json, sys
import numpy
import safetensors.numpy  # as the export server has imported safetensors before an export starts
from tasks.export.dependencies import recorded_dependencies
safetensors.numpy.save_file({"weight": numpy.ones(2)}, sys.argv[1])
with recorded_dependencies() as used:
    safetensors.numpy.load_file(sys.argv[1])
print(json.dumps([str(path) for path in used.files]))
"""


def test_weights_that_safetensors_reads_are_recorded_where_it_was_imported_before(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed (export extra)")
    weights = tmp_path / "weights.safetensors"
    done = run_python("-c", PROGRAM, weights)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [str(weights)]
