"""What became memory-bound with SME2, and what is left above the roof."""

from tasks.results.measurements.sme2_shift import ShiftRow, roof_sentence


def row(category: str, off_ms: float, on_ms: float, **roof: float | None) -> ShiftRow:
    shift = object.__new__(ShiftRow)
    shift.__dict__.update({"category": category, "time_off_ms": off_ms, "time_on_ms": on_ms, "winnable_on_ms": None})
    shift.__dict__.update(roof)
    return shift


def test_a_category_becomes_memory_bound_if_most_of_its_time_is_with_sme2_and_was_not_without() -> None:
    products = row("GEMM", 8.0, 1.0, memory_off_ms=1.0, memory_on_ms=0.8, winnable_on_ms=0.25)
    moves = row("Data Movement", 2.0, 2.0, memory_off_ms=2.0, memory_on_ms=2.0, winnable_on_ms=1.0)
    sentence = roof_sentence([products, moves, row("Unattributed", 0.1, 0.1)])
    assert "GEMM (0.800 ms of 1.00 ms) became memory-bound" in sentence
    assert "1.25 ms above the roof" in sentence
    assert "in Data Movement (1.00 ms)" in sentence
    assert roof_sentence([row("GEMM", 8.0, 1.0)]) == ""
    # and nothing became anything where the roof without SME2 is unknown
    unknown = row("GEMM", 8.0, 1.0, memory_off_ms=None, memory_on_ms=0.8, winnable_on_ms=0.25)
    assert roof_sentence([unknown]).startswith("What is left is 0.250 ms above the roof")
