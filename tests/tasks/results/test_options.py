"""What run-time options save beside the default of the same content; nothing below the limit of its figure."""

from pathlib import Path
from typing import Any

from tasks.results.measurements.options import OptionRow, read_options
from tasks.results.reader import open_answers
from tests.fixtures.report import report_of
from tests.fixtures.warehouse import BundleMaker

MS = MB = 1_000_000
DEFAULT = {"load_ns": 20 * MS, "model_peak_memory_bytes": 40 * MB, "model_anonymous_bytes": 30 * MB}
# What each set of options has of the model; others are those of the default. Load time counts from 20 % on, peak
# memory from 5 %.
OF_OPTIONS: dict[str, dict[str, Any]] = {
    "packed_cache=true": {
        "load_ns": 4 * MS, "first_load_ns": 50 * MS, "model_anonymous_bytes": 12 * MB, "cache_bytes": 9,
    },
    "load=mmap": {"load_ns": 17 * MS, "model_peak_memory_bytes": 41 * MB},
    "workspace=disabled": {"model_peak_memory_bytes": 50 * MB},
}  # fmt: skip


# What the runner reports of each, without which its sessions would be refused.
REPORTED: dict[str, dict[str, Any]] = {
    "packed_cache=true": {"backend_options": {"XnnpackBackend": {"weight_cache_enabled": True}}},
    "load=mmap": {"load_mode": "mmap"},
    "workspace=disabled": {"backend_options": {"XnnpackBackend": {"workspace_sharing_mode": 0}}},
}


def write(maker: BundleMaker, model: str, number: int, figures: dict[str, Any], **changes: Any) -> None:
    """Write a session whose figures scatter by a few parts in a thousand."""
    scatter = 1 + 0.0005 * (number % 5)
    figures = {**DEFAULT, "model_file_bytes": 6 * MB, **figures}
    stats = {name: round(value * scatter) for name, value in figures.items()} | REPORTED.get(options_of(model), {})
    maker.session([round(10 * MS * scatter)] * 3, model__name=model, repetition=number, stats=stats, **changes)


def options_of(model: str) -> str:
    return model.rpartition("@")[2].rpartition(",")[2]


def farm(folder: Path) -> BundleMaker:
    maker = BundleMaker(folder)
    for number in range(8):
        for model in ("net@tg8", "net@runner=1.5.1,tg8"):  # with another time on its own default
            write(maker, model, number, {})
        for options, figures in OF_OPTIONS.items():
            write(maker, f"net@tg8,{options}", number, figures)
        # a default of another program is none
        write(maker, "other", number, {}, model__pte_sha256="a" * 64)
        write(maker, "other@load=mmap", number, {"load_ns": MS}, model__pte_sha256="b" * 64)
    return maker


def test_each_set_of_options_is_beside_the_default_of_the_same_content(tmp_path: Path) -> None:
    maker = farm(tmp_path)
    assert maker.load().refused == []
    with open_answers(maker.warehouse, None) as answers:
        rows: dict[str, OptionRow] = {row.options: row for row in read_options(answers)}
    assert rows.keys() == OF_OPTIONS.keys()
    assert {row.model for row in rows.values()} == {"net@tg8"}
    assert rows["packed_cache=true"].saves == "load time -80.00 %; anonymous memory -60.00 %"
    assert rows["packed_cache=true"].costs == "load time of the first start +150.00 %"
    assert rows["packed_cache=true"].first_load.startswith("20.02 ms -> 50.04 ms (+150.00 %")
    assert (rows["load=mmap"].saves, rows["load=mmap"].costs) == ("", "")
    assert rows["load=mmap"].load.startswith("20.02 ms -> 17.01 ms (-15.00 %")
    assert (rows["workspace=disabled"].saves, rows["workspace=disabled"].costs) == ("", "peak memory +25.00 %")
    assert rows["workspace=disabled"].of_files.startswith("6.005 MB -> 6.005 MB")


def test_the_report_has_the_options_and_how_many_save_something(tmp_path: Path) -> None:
    report = report_of(farm(tmp_path))
    assert "1 of three comparisons with the default save" in report.markdown
    assert "load time of the first start +150.00 %" in report.markdown
