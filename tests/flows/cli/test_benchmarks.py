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
from tests.fixtures.warehouse import INACCURATE, BundleMaker

MS = 1_000_000
TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}


def record(*required: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*required], "additionalProperties": False}


def listing(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def mapping(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


TEXTS = mapping(TEXT)
_FIGURE = ("name", "benchmark_values")
MEASURE = record("value", value=NUMBER, lower_value=NUMBER, upper_value=NUMBER)
SCHEMAS = {
    "bencher": mapping(mapping(MEASURE) | {"minProperties": 1}) | {"propertyNames": {"maxLength": 1024}},
    "github-action-benchmark": listing(
        record("name", "unit", "value", name=TEXT, unit=TEXT, value=NUMBER, range=TEXT, extra=TEXT)
    ),
    "pytorch": listing(
        record(
            *("benchmark", "model", "metric"),
            benchmark=record("name", name=TEXT, mode={"enum": ["training", "inference"]}, dtype=TEXT, extra_info=TEXTS),
            model=record("name", name=TEXT, type=TEXT, backend=TEXT, origins=listing(TEXT), extra_info=TEXTS),
            metric=record(*_FIGURE, name=TEXT, benchmark_values=listing(NUMBER), target_value=NUMBER, extra_info=TEXTS),
            runners=listing(record(name=TEXT, type=TEXT, cpu_info=TEXT, extra_info=TEXTS)),
            dependencies=mapping(record(repo=TEXT, branch=TEXT, sha=TEXT, version=TEXT, extra_info=TEXTS)),
        )
    ),
}


def test_each_format_has_the_real_results_of_the_night_with_our_interval(command: Command, tmp_path: Path) -> None:
    # given a night of two series, one with wrong outputs, and one of an emulated device
    maker = BundleMaker(tmp_path)
    for index, ms in enumerate((10, 11, 12, 13, 14, 15)):
        maker.session([ms * MS] * 3, repetition=index, model__name="many")
    maker.session([7 * MS] * 3, model__name="one")
    maker.session([3 * MS] * 3, model__name="wrong", accuracy=INACCURATE)
    maker.session([5 * MS] * 3, model__name="many", device__name="qemu", device__emulated=True)
    maker.load()
    published = {}
    for form, schema in SCHEMAS.items():
        ended = command("verdicts", "--format", form, "--warehouse", maker.warehouse)
        published[form] = json.loads(ended.out)
        # then it is what its project reads, and no emulated device and no wrong output is among the results
        assert [error.message for error in Draft202012Validator(schema).iter_errors(published[form])] == [], form
        assert ("qemu" in ended.out, ended.err) == (False, "left out, because not results: 1 emulated, 1 inaccurate\n")
    # then Bencher has nanoseconds, with the interval of six sessions, and none of a single one
    many, one = "many fp32 sme2_off t1 on host", "one fp32 sme2_off t1 on host"
    latency = {"value": 12.5 * MS, "lower_value": 10 * MS, "upper_value": 15 * MS}
    assert {name: each["latency"] for name, each in published["bencher"].items()} == {
        many: pytest.approx(latency),
        one: pytest.approx({"value": 7 * MS}),
    }
    first, second = published["github-action-benchmark"]
    assert (first["name"], first["unit"], first["value"]) == (many, "ms", pytest.approx(12.5))
    assert first["range"] == "10 to 15 (95 % interval)"
    assert (second["name"], second["value"], "range" in second) == (one, pytest.approx(7), False)
    metric = published["pytorch"][0]["metric"]
    assert (metric["name"], metric["benchmark_values"]) == ("avg_inference_latency(ms)", [10, 11, 12, 13, 14, 15])
