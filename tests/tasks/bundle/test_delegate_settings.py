"""What the farm sets in OpenVINO for a session, and what it accepts as in force."""

from typing import Any

import pytest

from tasks.bundle.delegate_settings import delegate_contradiction, delegate_settings
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime_options import runner_flags

CALLED = {"OpenvinoBackend", "XnnpackBackend"}


@pytest.mark.parametrize(
    ("precision", "set_to"),
    [
        ("fp32", "f32"), ("int8_static", "f32"), ("int4_dynamic embedding8", "f32"), ("fp16 except layer_norm", "f16"),
        ("bf16", "bf16"), ("as_is", "default"), ("internal.recipes:make", "default"),
    ],
)  # fmt: skip
def test_openvino_gets_the_threads_of_the_cell_and_the_type_of_its_precision(precision: str, set_to: str) -> None:
    flags = runner_flags((("load", "mmap"),), delegate_settings(CALLED, precision, 3))
    # and may use all logical processors of a core, which `threads: all` states
    properties = f"INFERENCE_NUM_THREADS=3,ENABLE_HYPER_THREADING=YES,INFERENCE_PRECISION_HINT={set_to}"
    assert flags == ["--load_mode=mmap", f"--backend_options=OpenvinoRuntime:{properties}"]
    assert delegate_settings({"XnnpackBackend"}, precision, 3) == []


@pytest.mark.parametrize(
    ("precision", "returned", "cause"),
    [
        ("fp32", (2, "f32"), None),
        ("fp32", (1, "f32"), "threads=2 is not in force: OpenVINO returned 1 for INFERENCE_NUM_THREADS, not 2"),
        ("fp32", (2, "bf16"), "precision=fp32 is not in force: OpenVINO returned bf16 for INFERENCE_PRECISION_HINT"),
        ("fp16", (2, "f16"), None),
        ("fp16", (2, "f32"), None),  # of a processor without it
        ("fp16", (2, "bf16"), "precision=fp16 is not in force"),
        ("as_is", (2, "bf16"), None),
        ("as_is", (2, None), "OpenVINO returned none"),
    ],
)
def test_a_session_counts_only_if_what_its_cell_states_was_in_force(
    precision: str, returned: Any, cause: str | None
) -> None:
    values: dict[str, Any] = dict(zip(("INFERENCE_NUM_THREADS", "INFERENCE_PRECISION_HINT"), returned, strict=True))
    values |= {"ENABLE_HYPER_THREADING": False}  # of a processor without it
    stats = Stats.model_validate({"backend_options": {"OpenvinoRuntime": values}})
    actual = delegate_contradiction(delegate_settings(CALLED, precision, 2), stats)
    assert (actual is None) == (cause is None)
    assert (cause or "") in (actual or "")
