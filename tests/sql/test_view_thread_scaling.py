"""How a model's latency changes with the number of threads: sessions, a query, the expected rows."""

import pytest

from tests.fixtures.warehouse import BundleMaker

MS = 1_000_000
BOARD = {"model": "board", "soc": "SM8850", "sme": True, "sme2": True}


def scaled(maker: BundleMaker, *, emulated: bool = False) -> None:
    """SME2 is best with two threads, and without SME each thread helps."""
    measured = {"sme2_on": {1: 8, 2: 5, 4: 7}, "sme2_off": {1: 40, 2: 20, 4: 10}}
    for variant, times in measured.items():
        for threads, ms in times.items():
            maker.session([ms * MS], variant=variant, threads=threads, device__facts=BOARD, device__emulated=emulated)
    maker.load()


def test_the_recommended_number_of_threads_is_the_fewest_of_the_fastest(maker: BundleMaker) -> None:
    scaled(maker)
    columns = "variant, threads, time_ms, speedup, efficiency, recommended_threads"
    assert maker.ask(f"SELECT {columns} FROM thread_scaling ORDER BY variant, threads") == [
        ("sme2_off", 1, 40.0, 1.0, 1.0, 4),
        ("sme2_off", 2, 20.0, 2.0, 1.0, 4),
        ("sme2_off", 4, 10.0, 4.0, 1.0, 4),
        ("sme2_on", 1, 8.0, 1.0, 1.0, 2),
        ("sme2_on", 2, 5.0, 1.6, 0.8, 2),
        ("sme2_on", 4, 7.0, pytest.approx(8 / 7), pytest.approx(2 / 7), 2),
    ]
    assert maker.ask("SELECT count(DISTINCT thread_group) FROM thread_scaling") == [(1,)]


@pytest.mark.parametrize(("us", "recommended"), [(1030, 1), (1031, 2)])
def test_of_times_within_3_percent_the_fewer_threads_are_recommended(
    maker: BundleMaker, us: int, recommended: int
) -> None:
    # given two threads that are that much faster than one, beside another model for which four are best
    for threads, model_us in ((1, us), (2, 1000)):
        maker.session([model_us * 1000], threads=threads)
    for threads in (1, 2, 4):
        maker.session([90_000 // threads], threads=threads, model__pte_sha256="another")
    maker.load()
    # then each model has its own recommendation
    asked = "SELECT DISTINCT pte_sha256, recommended_threads FROM thread_scaling ORDER BY ALL"
    assert maker.ask(asked) == [("another", 4), ("p1", recommended)]


def test_other_programs_and_runners_and_a_single_number_of_threads_are_not_compared(maker: BundleMaker) -> None:
    maker.session([MS], threads=1)
    maker.session([MS], threads=2, model__pte_sha256="another")
    maker.session([MS], threads=4, runner__runner_sha256="another")
    maker.load()
    assert maker.ask("SELECT * FROM thread_scaling") == []


def test_an_emulated_device_has_no_scaling(maker: BundleMaker) -> None:
    scaled(maker, emulated=True)
    columns = "speedup, efficiency, recommended_threads"
    assert maker.ask(f"SELECT DISTINCT {columns} FROM thread_scaling") == [(None, None, None)]
