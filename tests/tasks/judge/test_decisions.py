"""Decisions about nights: which night of which series they concern, and how they are read."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tasks.judge import decisions as judged
from tasks.judge.decisions import Decision, Decisions, Selector, SeriesNight, is_excluded, starts_baseline
from tasks.store.bundle_store import BundleStore
from tasks.store.local_store import LocalStore
from tests.fixtures.nights import decision

NIGHT = date(2026, 11, 20)
SERIES = SeriesNight(model="toy", precision="fp32", variant="sme2_on", device="phone", night=NIGHT)


def revocation(number: int, of: int) -> Decision:
    return decision(number, kind="revocation", revokes=f"{of:08x}")


def test_an_excluded_night_is_that_night_of_the_named_series_only() -> None:
    everywhere = Decisions((decision(1),))
    on_phone = Decisions((decision(1, series=Selector(device="phone", model="toy")),))
    for decisions in (everywhere, on_phone):
        assert is_excluded(decisions, SERIES)
        assert not is_excluded(decisions, replace(SERIES, night=date(2026, 11, 21)))
        assert not starts_baseline(decisions, SERIES)
    assert is_excluded(everywhere, replace(SERIES, device="tablet"))
    assert not is_excluded(on_phone, replace(SERIES, device="tablet"))
    assert not is_excluded(on_phone, replace(SERIES, model="other"))


def test_a_reset_starts_a_baseline_at_its_night_or_at_the_first_night_after_it() -> None:
    decisions = Decisions((decision(1, kind="baseline_reset", series=Selector(precision="fp32", variant="sme2_on")),))
    before, after = replace(SERIES, night=date(2026, 11, 19)), replace(SERIES, night=date(2026, 11, 21))
    assert starts_baseline(decisions, SERIES, previous=before.night)
    assert starts_baseline(decisions, SERIES)
    assert not starts_baseline(decisions, before, previous=date(2026, 11, 18))
    assert not starts_baseline(decisions, after, previous=NIGHT), "the baseline started the night before"
    # then a night without sessions between two others does not hide it
    assert starts_baseline(decisions, after, previous=before.night)
    # and other series keep their baseline, and no night is excluded
    assert not starts_baseline(decisions, replace(SERIES, variant="sme2_off"), previous=before.night)
    assert not is_excluded(decisions, SERIES)


def test_a_revoked_decision_does_not_count_and_can_be_recorded_again() -> None:
    revoked = Decisions((decision(1), revocation(2, of=1)))
    assert not is_excluded(revoked, SERIES)
    assert revoked.revoked["00000001"].id == "00000002"
    assert is_excluded(Decisions((*revoked.records, decision(3))), SERIES)


@pytest.mark.parametrize("night", [NIGHT, None])
def test_a_note_changes_what_no_verdict_compares(night: date | None) -> None:
    noted = Decisions((decision(1, kind="note", night=night),))
    assert not is_excluded(noted, SERIES)
    assert not starts_baseline(noted, SERIES, previous=date(2026, 11, 19))
    assert [each.kind for each in noted.in_force] == ["note"]


def test_decisions_are_kept_in_the_store_and_are_not_a_sweep(store: BundleStore) -> None:
    assert judged.read_decisions(store) == Decisions()
    written = [revocation(2, of=1), decision(1, reason="grün\n“quoted”", series=Selector(device="phone"))]
    for record in written:
        store.record_decision(record.file_name, record.text())
    # then they are read as they were, in the order of their times
    assert judged.read_decisions(store) == Decisions(tuple(reversed(written)))
    assert store.sweep_ids() == []


DAMAGED = [
    (b'{"version": 1}', "not a decision (id: Field required)"),
    (b"\xff\xfe", "not a decision (Invalid JSON"),
    (decision(7).text(), "contains decision 00000007; rename the file to 00000007.json"),
    (decision(2).text().replace(b"2026-11-20", b"2026-02-30"), "not a decision (night: "),
    (decision(2).text().replace(b"night_exclusion", b"amnesty"), "not a decision (kind: "),
    (decision(2).text().replace(b'"night": "2026-11-20",', b""), "every other kind but a note needs `night`"),
    (decision(2).text().replace(b"night_exclusion", b"revocation"), "a revocation needs `revokes`"),
    (revocation(2, of=1).text().replace(b"00000001", b"model toy"), "not a decision (revokes: "),
    (decision(2).text().replace(b"night_exclusion", b"missing_file"), "a missing file is a `.pte file` or a `runner`"),
    (revocation(2, of=1).text().replace(b'"series": {}', b'"series": {"model": "toy"}'), "it has no `series`"),
    (decision(2).text().replace(b"08:02:00Z", b"08:02:00"), "not a decision (decided_at: "),
    (None, "is not a regular file; move it away; the decision does not count"),
]


@pytest.mark.parametrize(("content", "sentence"), DAMAGED)
def test_a_damaged_file_is_named_and_stops_no_other(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    store = LocalStore(tmp_path)
    store.record_decision("00000001.json", decision(1).text())
    if content is None:
        (tmp_path / "decisions" / "00000002.json").mkdir()
    else:
        store.record_decision("00000002.json", content)
    found = judged.read_decisions(store)
    assert is_excluded(found, SERIES)
    [damaged] = found.damaged
    assert "00000002.json: " in damaged
    assert sentence in damaged
    assert "\n" not in damaged
