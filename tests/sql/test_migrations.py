"""Migrations that were released never change, not even in a comment: a warehouse remembers their hashes."""

import hashlib

from tests.fixtures.paths import ROOT

RELEASED = {
    "0001_tables.sql": "ed9f154e16426f6e",
    "0002_kernel_profile.sql": "215797252ae1f488",
    "0003_cells.sql": "6f4aba94120c4f24",
    "0004_thinned.sql": "1eca4fdb8cc212e1",
    "0005_session_statistic.sql": "0576105f94c3dc0c",
    "0006_decision.sql": "092090dde2eacbe0",
    "0007_verdict.sql": "41da2dedfc1d2cbe",
    "0008_comparison.sql": "83cdc5db51046946",
    "0009_operator_verdict.sql": "4f7cd19657f339b8",
    "0010_metric.sql": "ccfefa78508afa00",
    "0011_source.sql": "e114106d13df2ca4",
    "0012_case.sql": "0be32cf4af216df5",
    "0013_node_source.sql": "cca720476341897d",
    "0014_accuracy.sql": "44be63bdc6903120",
    "0015_layer_value.sql": "7e8e36fde14c03e5",
    "0016_sme.sql": "647a928bacd86f8e",
    "0017_runner.sql": "48269894329c756c",
    "0018_session_gate.sql": "f5cedc0af32924f0",
    "0019_transport.sql": "7b3c1d50e766793d",
    "0020_one_time.sql": "b79abb45fcf661da",
    "0021_delegate_note.sql": "2a541bfde4d91c8f",
    "0022_least_top1.sql": "d2dc94a09d3d5b2c",
    "0023_layer_fp32.sql": "111410f88f92515a",
    "0024_comparison_note.sql": "d6f363463bc9b7f2",
    "0025_cell_made_from.sql": "b09a31ce6f62dc3c",
    "0026_source_author.sql": "8d68d7e48bbf4c5b",
    "0027_generation.sql": "d9eb335f80caaa65",
    "0028_work.sql": "7218eebb8712ddfb",
    "0029_margin.sql": "c5c66d79da5270ba",
    "0030_cell_output.sql": "b21631e15f517827",
}


def test_a_released_migration_never_changes_or_every_older_warehouse_would_be_refused() -> None:
    # given the migrations as they are; a new one is added to the table above when it is released
    found = sorted((ROOT / "sql/migrations").glob("*.sql"))
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in found}
    # then those that built older warehouses are the same
    assert hashes == RELEASED
