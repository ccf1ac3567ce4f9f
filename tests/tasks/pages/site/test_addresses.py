"""An address that a page has leads to it; another one leads to nothing, at once."""

import pytest

from sql.warehouse import open_read_only
from tasks.pages.site.site import Site
from tasks.results.addresses import arms_page, history_file, slug, split_pair
from tasks.results.reader import Reader
from tests.fixtures.growth import grows_with_the_square
from tests.fixtures.nights import night_of
from tests.fixtures.pages import Pages
from tests.fixtures.warehouse import BundleMaker


@pytest.mark.parametrize("folder", ["comparisons/model", "models", "histories", "a"])
@pytest.mark.parametrize("part", [".", "/", ".html"])
def test_a_long_address_is_answered_in_a_time_that_grows_with_its_length(pages: Pages, folder: str, part: str) -> None:
    assert pages.site.file(f"{folder}/{part * 100}.html") is None
    assert not grows_with_the_square(pages.site.file, lambda length: f"{folder}/{part * (length // len(part))}")


@pytest.mark.parametrize("name", ["a..b", "b...c", "..", "a.", "v1.2", "A..B", "...x"])
def test_a_name_with_dots_is_one_side_of_a_pair(name: str) -> None:
    assert ".." not in slug(name)
    for first, second in ((name, "other"), ("other", name)):
        pair = arms_page("model", first, second).removesuffix(".html").rpartition("/")[2]
        assert split_pair(pair) == (slug(first), slug(second))


def test_models_whose_names_contain_dots_are_compared(maker: BundleMaker) -> None:
    for model in ("a..b", "c...d"):
        night_of(maker, 1, model__name=model)
        night_of(maker, 2, model__name=model)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        site = Site(Reader(connection), "x")
        assert site.file(arms_page("model", "a..b", "c...d")) is not None
        # and a file of data has one address
        row = site.series[0]
        data = history_file(row.device, row.night)
        assert [site.file(f"{data}/x"), site.file(data.removesuffix(".js"))] == [None, None]
