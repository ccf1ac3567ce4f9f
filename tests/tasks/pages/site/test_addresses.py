"""An address that a page has leads to it; another one leads to nothing, at once."""

import pytest

from tasks.results.addresses import arms_page, slug, split_pair
from tests.fixtures.hostile import grows_with_the_square
from tests.fixtures.pages import Pages


@pytest.mark.parametrize("folder", ["comparisons/model", "models", "histories", "a"])
@pytest.mark.parametrize("part", [".", "/", ".html"])
def test_a_long_address_is_answered_in_a_time_that_grows_with_its_length(small: Pages, folder: str, part: str) -> None:
    assert small.site.file(f"{folder}/{part * 100}.html") is None
    assert not grows_with_the_square(small.site.file, lambda length: f"{folder}/{part * (length // len(part))}")


@pytest.mark.parametrize("name", ["a..b", "b...c", "..", "a.", "v1.2", "A..B", "...x"])
def test_a_name_with_dots_is_one_side_of_a_pair(name: str) -> None:
    assert ".." not in slug(name)
    for first, second in ((name, "other"), ("other", name)):
        pair = arms_page("model", first, second).removesuffix(".html").rpartition("/")[2]
        assert split_pair(pair) == (slug(first), slug(second))


def test_models_whose_names_contain_dots_are_compared(small: Pages) -> None:
    assert small.read(arms_page("model", "a..b", "c...d")).tables["all"]


@pytest.mark.parametrize(
    "address",
    [
        *("nothing.html", "nights/2026-02-30.html", "nights/2026-11-04.html", "models/none.html", "../x"),
        # the week of a night has one address, that of a week without one none
        *("histories/host/2026-11-02", "histories/host/2026-11-02.js/x", "histories/host/2026-11-09.js"),
        *("histories/none/2026-11-02.js", "histories/host/2026-11-03.js"),
    ],
)
def test_there_is_no_page_where_there_is_nothing(small: Pages, address: str) -> None:
    assert small.site.file(address) is None
