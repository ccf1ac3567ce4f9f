"""A language model is exported by a configuration: its cases, and what its texts are judged by."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.export.entry import ModelEntry
from tasks.export.exported import Export
from tests.fixtures.exports import exported_cases

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
STEPS = 4


def exported(precision: str, folder: Path) -> dict[str, Export]:
    """The cases of a Llama of one layer, by the part of their names that is theirs."""
    sizes: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 32}
    entry = ModelEntry.model_validate(
        {
            "name": "llama",
            "transformers": "LlamaConfig",
            "config": {**sizes, "num_attention_heads": 2},
            "generate": {"prefill": [4], "depth": [4], "decode": STEPS},
        }
    )
    return {export.model.partition("@")[2]: export for export in exported_cases(entry, precision, folder)}


def test_both_texts_have_the_likeliest_tokens(tmp_path: Path) -> None:
    cases = exported("int4_dynamic", tmp_path)
    assert (list(cases), cases["pp4"].case.choices) == (["pp4", "tg4_d4"], {})
    written = cases["tg4_d4"]
    assert list(written.case.choices) == ["eager", "host"]
    # of eager's text, the likeliest is what was written
    tokens, behind = written.case.choices["eager"]
    likeliest = np.fromfile(written.folder / tokens["file"], np.int64).reshape(STEPS, -1)
    text = np.fromfile(written.folder / written.outputs[0]["file"], np.int64)
    assert likeliest[:, 0].tolist() == text.tolist()
    assert (behind["dtype"], behind["shape"]) == ("float32", [STEPS, 4])
    # and their files are checked before the export is used again, as all others are
    assert {tokens["file"], behind["file"]} <= {entry["file"] for entry in written.case.tensors}


def test_a_recipe_that_changes_the_program_has_none(tmp_path: Path) -> None:
    assert exported("int8_dynamic", tmp_path)["tg4_d4"].case.choices == {}
