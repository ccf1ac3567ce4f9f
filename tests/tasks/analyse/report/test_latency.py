"""The report on latency: what a cell took, what its runner needed, and what of it cannot be trusted."""

from tests.fixtures.report import MS, report_of
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker


def test_the_median_is_that_of_the_sessions_medians_and_the_sessions_are_counted(maker: BundleMaker) -> None:
    maker.session([10 * MS, 10 * MS, 11 * MS], index=0)
    maker.session([20 * MS] * 3, index=1)
    maker.session([12 * MS] * 3, index=2)
    latency = report_of(maker)["latency"]
    assert latency.column("Median") == ["12.000"]
    assert latency.column("Between") == ["2.000"]
    assert latency.column("Sessions") == ["3"]
    assert latency.column("Runs") == ["9"]


def test_one_session_has_no_distance_between_sessions(maker: BundleMaker) -> None:
    maker.session([10 * MS])
    assert report_of(maker)["latency"].column("Between") == ["–"]  # noqa: RUF001


def test_load_time_and_memory_are_those_the_runner_reports(maker: BundleMaker) -> None:
    maker.session([MS], stats={"load_ns": 5 * MS, "peak_resident_bytes": 3 << 20})
    latency = report_of(maker)["latency"]
    assert (latency.column("Load"), latency.column("Peak")) == (["5.0"], ["3.0"])


def test_the_memory_of_the_model_and_the_cost_of_its_etdump_are_shown_where_they_are_known(maker: BundleMaker) -> None:
    stats = {"load_ns": MS, "peak_resident_bytes": 9 << 20, "model_peak_resident_bytes": 3 << 20, "threads_used": 1}
    maker.session([MS, MS], stats=stats | {"execution_ns": [MS, 1016], "untraced_execution_ns": [MS, 1000]})
    latency = report_of(maker)["latency"]
    assert (latency.column("Peak"), latency.column("ETDump")) == (["3.0"], ["1.6"])


def test_a_simulated_device_is_marked_everywhere_and_its_times_are_not_shown(maker: BundleMaker) -> None:
    # given both variants on a simulated device
    for variant in ("sme2_on", "sme2_off"):
        run = (3_456_789, {CONVOLUTION: 2_345_678})
        maker.session([run], variant=variant, device__name="simulated-001", device__emulated=True)
    report = report_of(maker)
    # then its rows are marked, and a sentence states what it is
    assert report["latency"].column("Median") == ["–", "–"]  # noqa: RUF001
    assert report["latency"].column("Device") == ["simulated-001 simulated"] * 2
    assert report.contains("nothing was measured, and no time is shown or ranked", "latency")
    assert "on one device (one of them simulated)" in report.markdown
    # and no time is anywhere
    for time in ("3.4", "2.3", "67.8"):
        assert time not in report.html.split("<main>")[1]
        assert time not in report.markdown


def test_a_costly_etdump_is_named(maker: BundleMaker) -> None:
    times = {"execution_ns": [MS, 1730], "untraced_execution_ns": [MS, 1000]}
    maker.session([MS, MS], stats={"load_ns": MS, "threads_used": 1, **times})
    assert report_of(maker).contains("Recording the ETDump adds more than 5 % to the runs of one cell", "latency")


def test_an_emulated_device_is_marked_and_its_times_are_not_shown(maker: BundleMaker) -> None:
    stats = {"load_ns": 7_654_321, "peak_resident_bytes": 1 << 20}
    for variant in ("sme2_on", "sme2_off"):
        maker.session(
            [(3_456_789, {CONVOLUTION: 2_345_678, MEAN: 123_456})], variant=variant, stats=stats, device__emulated=True
        )
    report = report_of(maker)
    assert report["latency"].column("Median") == ["–", "–"]  # noqa: RUF001
    assert report["latency"].column("Device") == ["host emulated"] * 2
    for time in ("3.4", "2.3", "7.6", "67.8"):  # ms of the run, of the convolution, of loading; the convolution's share
        assert time not in report.html.split("<main>")[1]
        assert time not in report.markdown
    assert report.contains("host is emulated", "latency")
    assert report.contains("there are no times to base advice on", "advice")
