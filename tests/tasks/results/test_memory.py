"""A peak memory that grew: its incident and its explanation name the owner."""

from pathlib import Path
from typing import Any

from tasks.results.explanation import explain
from tasks.results.incidents import read_incidents
from tasks.results.reader import open_reader
from tasks.results.series import SeriesRow
from tests.fixtures.nights import night_of, week_of
from tests.fixtures.warehouse import BundleMaker

MB = 1_000_000
PLAN: dict[str, Any] = {
    "arenas_bytes": [2 * MB], "instructions": 1, "live_bytes": 2 * MB, "live_at": 0, "named_bytes": 13 * MB,
}  # fmt: skip


def stats(packed_mb: int) -> dict[str, int]:
    """Return what a runner reports whose weights need so much memory when they are packed."""
    kinds = {"start_anonymous": 3, "start_file": 20, "load_anonymous": 5 + packed_mb, "load_file": 20}
    kinds |= {"model_anonymous": 9 + packed_mb, "model_file": 20, "model_peak_memory": 29 + packed_mb}
    kinds |= {"end_anonymous": 9 + packed_mb, "end_file": 20}
    kinds |= dict.fromkeys(("load_swapped", "model_swapped", "end_swapped"), 0)
    return {f"{kind}_bytes": size * MB for kind, size in kinds.items()}


def test_the_owner_that_grew_is_named_by_the_incident_and_its_explanation(tmp_path: Path) -> None:
    # given five nights, and one with another program whose weights are packed in twice the memory
    maker = BundleMaker(tmp_path)
    week_of(maker, 5, stats=stats(14), model__memory=PLAN)
    night_of(maker, 6, stats=stats(28), model__memory=PLAN, model__pte_sha256="p2")
    assert maker.load().refused == []
    with open_reader(maker.warehouse) as reader:
        [incident] = read_incidents(reader)
        [series] = [row.model for row in reader.rows(SeriesRow)]
        facts = {fact.title: fact.sentences for fact in explain(reader, series, {}).facts}
    # then both name it
    assert incident.memory == "packed weights 14.0 MB -> 28.0 MB"
    assert "peak memory worse" in incident.line
    assert "owners: packed weights 14.0 MB -> 28.0 MB" in incident.line
    [sentence] = [str(each) for each in facts["Other figures"] if "peak memory" in str(each)]
    assert sentence.endswith("owners: packed weights 14.0 MB -> 28.0 MB.")
