"""How far operators are from the roof of their device: sessions of models and of the roof, the expected rows."""

import json
from typing import Any

import pytest

from sql.cage.connection import open_readable
from sql.excerpt import Excerpt
from sql.readable import ReadableFile
from tasks.export.recipes import product_recipe
from tasks.results.measurements.roofline import DeviceRoofRow
from tasks.results.reader import open_reader
from tasks.results.table import Cell
from tasks.results.text import plain_text
from tests.fixtures.memory import PLAN
from tests.fixtures.roofs import MS, ROOF_STATS, conditions, model, roof, sources
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, TRANSPOSE, BundleMaker


def write_sessions(maker: BundleMaker) -> None:
    # a device whose fastest runs take 1.9 to 2.2 ms for 20 million products, in seven sessions
    roof(maker, 2, 1.9, 2.1, 2, 2.2, 2, 1.9, model__memory=PLAN, **conditions(2000))
    model(maker, **conditions(1500))
    # the same in another precision, without a roof, and on an emulated device
    model(maker, model__precision="fp16")
    emulated: dict[str, Any] = {"device__emulated": True, "device__name": "phone"}
    roof(maker, 1, **emulated)
    model(maker, **emulated)
    # another sweep, in which the device reports neither its caches nor its clock
    later: dict[str, Any] = {"sweep__sweep_id": "smoke-2026-11-21", "sweep__night": "2026-11-21"}
    roof(maker, 2, stats={"memory_read_bytes_per_s": 20 * 10**9}, **later)
    model(maker, mean=[10 * MS, 8], **later)


OF_HOST = "sweep_id = 'smoke-2026-11-20' AND precision = 'fp32' AND device = 'host'"


def test_the_roof_is_the_median_of_the_fastest_runs_of_the_sessions(farm: BundleMaker) -> None:
    columns = "device, sessions, peak_gmac_per_s, round(low_gmac_per_s, 2), round(high_gmac_per_s, 2), clock_mhz"
    assert farm.ask(f"SELECT {columns} FROM device_roof ORDER BY night") == [
        ("host", 7, 10.0, 9.09, 10.53, 2000.0), ("host", 1, 10.0, None, None, None),
    ]  # fmt: skip
    speeds = [{"bytes": 2**20, "gb_per_s": 100.0}, {"bytes": 2**28, "gb_per_s": 20.0}]
    assert farm.ask(f"SELECT read_speeds, memory_gb_per_s FROM device_roof WHERE {OF_HOST}") == [(speeds, 20.0)]


def test_an_operator_is_compared_with_what_limits_it(farm: BundleMaker) -> None:
    columns = "operator, bound, round(roof_ms, 6), round(share, 6), round(winnable_ms, 6), intensity"
    assert farm.ask(f"SELECT {columns} FROM operator_roofline WHERE {OF_HOST} ORDER BY time_ms") == [
        (TRANSPOSE, "overhead", 0.005, 1.0, 0.0, 0.0),
        (MEAN, "unknown", None, None, None, None),
        (LINEAR, "memory", 2.0, 1.0, 0.0, 0.025),
        (CONVOLUTION, "compute", 2.0, 0.5, 2.0, 5.0),
    ]
    columns = "gmac_per_s, gb_per_s, low_ms, high_ms, read_gb_per_s, clock_ratio, clock_differs"
    convolution = f"{OF_HOST} AND operator = '{CONVOLUTION}'"
    assert farm.ask(f"SELECT {columns} FROM operator_roofline WHERE {convolution}") == [
        (5.0, 1.0, 4.0, 4.0, 20.0, 0.75, True),
    ]
    # and the whole model with those whose work is known
    columns = "time_ms, round(roof_ms, 6), round(covered_share, 6), winnable_ms, compute_bound_ms, overhead_ms, macs"
    assert farm.ask(f"SELECT {columns} FROM model_roofline WHERE {OF_HOST}") == [
        (8.0, 4.005, 0.750625, 2.0, 4.0, 0.005, 21 * MS)
    ]


def test_without_caches_the_speed_of_memory_counts(farm: BundleMaker) -> None:
    later = "sweep_id = 'smoke-2026-11-21'"
    columns = "operator, bound, round(roof_ms, 6), clock_differs"
    assert farm.ask(f"SELECT {columns} FROM operator_roofline WHERE {later} ORDER BY time_ms") == [
        (TRANSPOSE, "overhead", 0.025, None), (MEAN, "compute", 1.0, None), (LINEAR, "memory", 2.0, None),
        (CONVOLUTION, "compute", 2.0, None),
    ]  # fmt: skip


@pytest.mark.parametrize("other", ["precision = 'fp16'", "device = 'phone'"])
def test_a_cell_without_a_roof_of_its_own_has_work_and_no_share(farm: BundleMaker, other: str) -> None:
    row = f"{other} AND operator = '{CONVOLUTION}'"
    assert farm.ask(f"SELECT macs, bytes, roof_ms, share, bound FROM operator_roofline WHERE {row}") == [
        (20 * MS, 4_000_000, None, None, "unknown")
    ]
    assert farm.ask(f"SELECT count(*) FROM model_roofline WHERE {other}") == [(0,)]


def test_operators_that_a_recipe_leaves_in_fp32_have_the_roof_of_fp32(maker: BundleMaker) -> None:
    # given a device that multiplies integers twice as fast, and another whose sweep has no fp32
    linear = "Fully Connected (NC, QD8, F32, QC8W) GEMM #1"
    times = {TRANSPOSE: 50_000, CONVOLUTION: 4 * MS, linear: 2 * MS, MEAN: MS}
    dynamic: dict[str, Any] = {"model__precision": "int8_dynamic"}
    for device, precisions in {"both": ("fp32", "int8_dynamic"), "one": ("int8_dynamic",)}.items():
        for precision in precisions:
            roof(maker, 2 if precision == "fp32" else 1, model__precision=precision, device__name=device)
        maker.session([(8 * MS, times)], device__name=device, files=sources([MS, 1000]), **dynamic)
    maker.load()
    columns = "operator, peak_gmac_per_s, round(roof_ms, 6), bound"
    of_device = f"SELECT {columns} FROM operator_roofline WHERE device = $$%s$$ ORDER BY time_ms"
    assert maker.ask(of_device % "both") == [
        (TRANSPOSE, 20.0, 0.005, "memory"), (MEAN, 10.0, 0.1, "compute"), (linear, 20.0, 2.0, "memory"),
        (CONVOLUTION, 10.0, 2.0, "compute"),
    ]  # fmt: skip
    assert maker.ask(of_device % "one") == [
        (TRANSPOSE, 20.0, 0.005, "memory"), (MEAN, None, None, "unknown"), (linear, 20.0, 2.0, "memory"),
        (CONVOLUTION, None, None, "unknown"),
    ]  # fmt: skip
    assert maker.ask("SELECT DISTINCT peak_gmac_per_s FROM model_roofline") == [(20.0,)]


def test_a_recipe_with_options_for_other_operators_has_the_roof_of_its_products(farm: BundleMaker) -> None:
    recipes = {
        "fp16 except layer_norm, softmax": "fp16",
        "int4_dynamic g128 embedding8 head8": "int4_dynamic g128",
        "int8_static": "int8_static",
        "package.module:recipe": "package.module:recipe",
    }
    for recipe, of_product in recipes.items():
        assert product_recipe(recipe) == of_product
        assert farm.ask(f"SELECT _product_recipe('{recipe}')") == [(of_product,)]


def test_an_excerpt_of_a_model_has_the_roof_of_its_device(farm: BundleMaker) -> None:
    with open_readable(ReadableFile(farm.warehouse, True, farm.warehouse)) as connection:
        excerpt = Excerpt(connection)
        excerpt.fill("smoke-2026-11-20", {("toy", "host")})
        assert excerpt.execute(f"SELECT macs FROM model_roofline WHERE {OF_HOST}").fetchall() == [(21 * MS,)]
        excerpt.close()


@pytest.mark.parametrize(
    "view",
    [
        "operator_time", "category_share", "portable_weight", "module_time", "thread_scaling", "sme2_speedup",
        "model_overview", "live_buffer",
    ],
)  # fmt: skip
def test_the_roof_is_not_a_model(farm: BundleMaker, view: str) -> None:
    assert farm.ask(f"SELECT count(*) FROM {view} WHERE model = 'roof'") == [(0,)]
    assert farm.ask("SELECT DISTINCT models FROM sweep_overview") == [(1,)]


def test_work_and_speeds_that_nobody_foresaw_keep_no_night_from_being_judged(maker: BundleMaker) -> None:
    # given the largest work that a bundle may state, and runners that report speeds of 0 or none
    work = [2**63 - 1, 2**63 - 1]
    largest = json.dumps({"version": 1, "modules": [], "sources": [[None, "aten.mean.dim", None]],
        "methods": {"forward": [{"chain": 0, "instruction": 2, "sources": [0], "work": work}]}}).encode()  # fmt: skip
    none: dict[str, Any] = {"memory_read_bytes_per_s": 0, "read_speeds": [{"bytes": 2**28, "bytes_per_s": 0}]}
    for device, stats in {"fast": ROOF_STATS, "silent": none}.items():
        roof(maker, 2, stats=stats, device__name=device)
        maker.session([(8 * MS, {LINEAR: 4 * MS, MEAN: MS})] * 2, device__name=device, files={"sources.json": largest})
    # then all are loaded and judged, and the pages have what is known
    assert maker.load().refused == []
    of_mean = f"FROM operator_roofline WHERE operator = '{MEAN}' ORDER BY device"
    assert maker.ask(f"SELECT macs > 9e18, roof_ms > 4e11 {of_mean}") == [(True, True), (True, None)]
    with open_reader(maker.warehouse) as reader:
        shown = [plain_text(row.read_speeds_cell(Cell("")).text) for row in reader.rows(DeviceRoofRow)]
    assert shown == ["1 MB: 100.0, 256 MB: 20.0", "\u2013"]
