"""`etfarm verdicts --format ...`: a night for Bencher, github-action-benchmark and PyTorch's benchmark database.

The schemas are ours, written after what each project publishes:
- Bencher: the JSON schema of the Bencher Metric Format, https://bencher.dev/docs/reference/bencher-metric-format
- github-action-benchmark: the interface BenchmarkResult of src/extract.ts, read for `customSmallerIsBetter`
- PyTorch: clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql of pytorch/test-infra. Its maps hold texts only.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.fixtures.command import Command
from tests.fixtures.described_cells import wrong
from tests.fixtures.warehouse import BundleMaker

MS = 1_000_000
TEXT: dict[str, Any] = {"type": "string"}
TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}
NUMBER: dict[str, Any] = {"type": "number"}


def record(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*required], "additionalProperties": False}


def listing(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


MEASURE = record("value", value=NUMBER, lower_value=NUMBER, upper_value=NUMBER)
NAMED = {"maxLength": 1024}
SCHEMAS = {
    "bencher": {
        "type": "object",
        "propertyNames": NAMED,
        "additionalProperties": {"type": "object", "additionalProperties": MEASURE, "minProperties": 1},
    },
    "github-action-benchmark": listing(
        record("name", "unit", "value", name=TEXT, unit=TEXT, value=NUMBER, range=TEXT, extra=TEXT)
    ),
    "pytorch": listing(
        record(
            *("benchmark", "model", "metric"),
            benchmark=record("name", name=TEXT, mode={"enum": ["training", "inference"]}, dtype=TEXT, extra_info=TEXTS),
            model=record("name", name=TEXT, type=TEXT, backend=TEXT, origins=listing(TEXT), extra_info=TEXTS),
            metric=record(
                *("name", "benchmark_values"),
                name=TEXT,
                benchmark_values=listing(NUMBER),
                target_value=NUMBER,
                extra_info=TEXTS,
            ),
            runners=listing(record(name=TEXT, type=TEXT, cpu_info=TEXT, extra_info=TEXTS)),
            dependencies={
                "type": "object",
                "additionalProperties": record(repo=TEXT, branch=TEXT, sha=TEXT, version=TEXT, extra_info=TEXTS),
            },
        )
    ),
}


@pytest.fixture
def published(command: Command, tmp_path: Path) -> dict[str, tuple[Any, str]]:
    """Printed and reported about a night of two series, one with wrong outputs, and an emulated device."""
    maker = BundleMaker(tmp_path)
    for index, ms in enumerate((10, 11, 12, 13, 14, 15)):
        maker.session([ms * MS] * 3, repetition=index, model__name="many")
    maker.session([7 * MS] * 3, model__name="one")
    maker.session([3 * MS] * 3, model__name="wrong", **wrong(True))
    maker.session([5 * MS] * 3, model__name="many", device__name="qemu", device__emulated=True)
    maker.load()
    documents = {}
    for form in SCHEMAS:
        ended = command("verdicts", "--format", form, "--warehouse", maker.warehouse)
        assert ended.code == 0, ended.err
        documents[form] = (json.loads(ended.out), ended.err)
    return documents


def test_each_format_has_the_real_results_of_the_night_with_our_interval(published: dict[str, tuple[Any, str]]) -> None:
    # then each is what its project reads
    for form, (content, remark) in published.items():
        assert [error.message for error in Draft202012Validator(SCHEMAS[form]).iter_errors(content)] == [], form
        # and no emulated device and no wrong output is among the results
        assert "qemu" not in json.dumps(content)
        assert remark == "left out, because not results: 1 emulated, 1 inaccurate\n"
    # then Bencher has nanoseconds, with the interval of six sessions, and none of a single one
    many, one = "many fp32 sme2_off t1 on host", "one fp32 sme2_off t1 on host"
    latency = {"value": 12.5 * MS, "lower_value": 10 * MS, "upper_value": 15 * MS}
    assert published["bencher"][0] == {
        many: {"latency": pytest.approx(latency)},
        one: {"latency": {"value": pytest.approx(7 * MS)}},
    }
    # then the others have milliseconds
    first, second = published["github-action-benchmark"][0]
    assert (first["name"], first["unit"], first["value"]) == (many, "ms", pytest.approx(12.5))
    assert first["range"] == "10 to 15 (95 % interval)"
    assert (second["name"], second["value"], "range" in second) == (one, pytest.approx(7), False)
    metric = published["pytorch"][0][0]["metric"]
    assert (metric["name"], metric["benchmark_values"]) == ("avg_inference_latency(ms)", [10, 11, 12, 13, 14, 15])
