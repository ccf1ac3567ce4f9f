"""The data of a history: what its chart draws of a night."""

import json
import re

from sql.warehouse import open_read_only
from tasks.pages.site.page_cache import read_origins
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.warehouse import BundleMaker


def test_the_sessions_of_a_night_are_in_the_order_in_which_they_started(maker: BundleMaker) -> None:
    # given three sessions of 1, 2 and 3 ms that started in another order than that of their ids
    for index, (minute, time_ms) in enumerate(((20, 3), (10, 2), (0, 1))):
        started_at = f"2026-11-02T01:{minute:02}:00+00:00"
        maker.session([time_ms * 1_000_000] * 3, repetition=index, **(fields_of(2) | {"started_at": started_at}))
    maker.load()
    # when the data of their week is read
    with open_read_only(maker.warehouse) as connection:
        site = Site(Reader(connection), "x")
        (device,) = site.device_series
        file = site.file(f"histories/{device}/2026-11-02.js")
    # then they are in the order of their starts
    assert file is not None
    found = re.fullmatch(r"farmHistory\(\.\.\.(.*)\);\n", file.content)
    assert found is not None
    columns, series = json.loads(found[1])
    ((night,),) = series.values()
    sessions = night[columns.index("sessions")].split(",")
    assert [float(session.split()[1]) for session in sessions] == [1.0, 2.0, 3.0]


def test_a_week_without_a_night_has_no_file(maker: BundleMaker) -> None:
    # given a series with a night in the first of four weeks and one in the last
    for day in (1, 20):
        night_of(maker, day, sessions=1)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        site = Site(Reader(connection), "x")
        (device,) = site.device_series
        histories = [address for address in read_origins(site) if address.startswith("histories/")]
        # then its page and the site have these two, and the address of a week between leads nowhere
        assert histories == [f"histories/{device}/{monday}.js" for monday in ("2026-10-26", "2026-11-16")]
        page = site.file(f"devices/{device}.html")
        assert page is not None
        assert page.content.count(f"histories/{device}/") == len(histories)
        assert site.file(f"histories/{device}/2026-11-02.js") is None
