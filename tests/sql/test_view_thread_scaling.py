"""How a model's latency changes with the number of threads: sessions, a query, the expected rows."""

from typing import Any

import pytest

from tests.fixtures.warehouse import BundleMaker

US = 1_000


def write_sessions(maker: BundleMaker) -> None:
    # SME2 is best with two threads, and without SME each thread helps
    for variant, times in ("sme2_on", {1: 8, 2: 5, 4: 7}), ("sme2_off", {1: 40, 2: 20, 4: 10}):
        for threads, ms in times.items():
            for emulated in (False, True):
                device: dict[str, Any] = {"device__name": f"emulated {emulated}", "device__emulated": emulated}
                maker.session([ms * 1000 * US], variant=variant, threads=threads, **device)
    # a device whose two threads are that much faster than one, and another model for which four are best
    for us in (1030, 1031):
        for threads, model_us in ((1, us), (2, 1000)):
            maker.session([model_us * US], threads=threads, device__name=f"{us}")
        for threads in (1, 2, 4):
            maker.session([90_000 // threads], threads=threads, model__pte_sha256="another", device__name=f"{us}")
    # other programs and runners, and a single number of threads
    maker.session([US], device__name="single")
    maker.session([US], threads=2, model__pte_sha256="another", device__name="single")
    maker.session([US], threads=4, runner__runner_sha256="another", device__name="single")


def test_the_recommended_number_of_threads_is_the_fewest_of_the_fastest(farm: BundleMaker) -> None:
    columns = "variant, threads, time_ms, speedup, efficiency, recommended_threads"
    asked = f"SELECT {columns} FROM thread_scaling WHERE device = 'emulated False' ORDER BY variant, threads"
    assert farm.ask(asked) == [
        ("sme2_off", 1, 40.0, 1.0, 1.0, 4),
        ("sme2_off", 2, 20.0, 2.0, 1.0, 4),
        ("sme2_off", 4, 10.0, 4.0, 1.0, 4),
        ("sme2_on", 1, 8.0, 1.0, 1.0, 2),
        ("sme2_on", 2, 5.0, 1.6, 0.8, 2),
        ("sme2_on", 4, 7.0, pytest.approx(8 / 7), pytest.approx(2 / 7), 2),
    ]
    # and an emulated device has none, as what has a single number of threads
    columns = "device, speedup, efficiency, recommended_threads, count(DISTINCT thread_group)"
    others = f"SELECT {columns} FROM thread_scaling WHERE device IN ('single', 'emulated True') GROUP BY ALL"
    assert farm.ask(others) == [("emulated True", None, None, None, 1)]


def test_of_times_within_3_percent_the_fewer_threads_are_recommended_for_each_model(farm: BundleMaker) -> None:
    asked = (
        "SELECT DISTINCT device, pte_sha256, recommended_threads FROM thread_scaling WHERE device[1] = '1' ORDER BY ALL"
    )
    assert farm.ask(asked) == [("1030", "another", 4), ("1030", "p1", 1), ("1031", "another", 4), ("1031", "p1", 2)]
