"""The published folder in a real browser, opened without any server: everything works and nothing is fetched."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tasks.pages.html import SITE_POLICY
from tests.fixtures.needs import needs
from tests.fixtures.pages import read_page
from tests.fixtures.publications import publish_site

pytestmark = pytest.mark.thorough
KINDS = ("index.html", "nights.html", "models.html", "devices.html", "sme2.html", "runners.html")
FOLDERS = ("nights", "sweeps", "models", "devices", "sessions", "cells", "comparisons")
DEVICE = "devices/phone-001.html"


@pytest.fixture(scope="module")
def site(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("chromium")
    folder: Path = tmp_path_factory.mktemp("site")
    publish_site(warehouse, str(folder))
    return folder


@pytest.fixture(scope="module")
def chromium(site: Path) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """An empty page, which notes what goes wrong and what it requests; both are checked at its end."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda each: None if each.url.startswith(("file:", "data:")) else wrong.append(each.url))
    yield page
    context.close()
    assert wrong == []


def examples(site: Path) -> list[str]:
    firsts = (min((site / folder).rglob("*.html")) for folder in FOLDERS)
    return [*KINDS, *(str(first.relative_to(site)) for first in firsts), history_of(site, "bert_03")]


def history_of(site: Path, model: str) -> str:
    histories = read_page((site / DEVICE).read_text(encoding="utf-8")).histories["series"]
    return next(f"{DEVICE}?series={series}" for series, each in histories.items() if each["model"] == model)


def open_page(page: Any, site: Path | str, address: str) -> None:
    """Open a page from its file or from a server, and wait until its charts are drawn."""
    page.goto(f"{site if isinstance(site, str) else site.as_uri()}/{address}")
    if "?series=" in address:
        page.locator("#history table").first.wait_for(state="attached")
    page.wait_for_function("[...document.querySelectorAll('.drawing')].every((each) => each.querySelector('svg'))")


def test_every_kind_of_page_is_accessible_in_light_and_dark_and_fits_a_phone(page: Any, site: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for address in examples(site):
        page.set_viewport_size({"width": 1280, "height": 900})
        open_page(page, site, address)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            violations = Axe().run(page, options={"preload": False}).response["violations"]
            assert [(address, scheme, each["id"], each["nodes"][0]["html"][:200]) for each in violations] == []
        page.set_viewport_size({"width": 390, "height": 844})
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
        cut = page.evaluate(
            "[...document.querySelectorAll('main section > .scroll td')].filter((cell) => cell.offsetWidth && "
            "(cell.getBoundingClientRect().right > innerWidth + 1 || cell.scrollWidth > cell.clientWidth + 1))"
            ".map((cell) => cell.outerHTML.slice(0, 200))"
        )
        assert cut == [], address


def column(page: Any, place: int, table: int = 0) -> list[str]:
    """The visible cells of a column of a table."""
    rows = page.locator("main table").nth(table).locator("tbody tr:visible")
    return [str(text).strip() for text in rows.locator(f"td:nth-child({place + 1})").all_inner_texts()]


def test_a_table_sorts_by_click_and_by_keyboard_and_the_address_keeps_it(page: Any, site: Path) -> None:
    # given the list of nights
    open_page(page, site, "nights.html")
    nights = column(page, 0)
    # when its first head is clicked
    head = page.locator("main table").first.get_by_role("button", name="Night")
    head.click()
    assert column(page, 0) == sorted(nights)
    # then the address is a link to this view
    link = page.url
    assert "t0.sort" in link
    # and the keyboard does the same
    head.focus()
    page.keyboard.press("Enter")
    assert column(page, 0) == sorted(nights, reverse=True)
    # and back is the view before
    page.go_back()
    assert page.url == link
    assert column(page, 0) == sorted(nights)
    page.goto("about:blank")
    page.goto(link)
    assert column(page, 0) == sorted(nights)


def test_the_matrix_is_filtered_and_says_how_many_rows_are_hidden(page: Any, site: Path) -> None:
    open_page(page, site, "index.html")
    matrix = page.locator("#matrix")
    every = matrix.locator("tbody tr:visible").count()
    # when one precision is chosen
    matrix.get_by_label("Only this: Precision").select_option("fp16")
    shown = matrix.locator("tbody tr:visible").count()
    # then only its rows are shown, the others are counted, and the address keeps the choice
    assert 0 < shown < every
    assert f"{shown} of {every} rows, {every - shown} hidden" in matrix.get_by_role("status").inner_text()
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    assert page.locator("#matrix tbody tr:visible").count() == shown


def test_the_first_key_leads_past_the_navigation_and_the_search_to_a_model(page: Any, site: Path) -> None:
    open_page(page, site, "nights/2026-11-20.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    search = page.get_by_role("search").get_by_role("combobox")
    search.fill("nosuchname")
    search.press("Enter")
    assert search.evaluate("(input) => input.validationMessage") == "nothing is named nosuchname"
    search.fill("bert")
    search.press("Enter")
    page.wait_for_url("**/models/bert_03.html")
    assert page.locator("h1").inner_text() == "Model bert_03"


def test_a_history_is_drawn_from_its_files_with_a_point_for_each_row_of_its_table(page: Any, site: Path) -> None:
    # when a series is chosen by its address, then the page is that of the series, with the newest verdict first
    open_page(page, site, history_of(site, "bert_03"))
    assert page.locator("h1").inner_text().startswith("bert_03 ")
    assert "regression since 2026-11-20" in page.locator(".answer").inner_text()
    assert not page.locator("#facts").is_visible()
    # and each point of the chart is a row of the table behind it
    nights = [row.locator("td").all_inner_texts() for row in page.locator("#history > .scroll tbody tr").all()]
    assert (len(nights), nights[0][0], nights[0][3]) == (12, "2026-11-20", "regression")
    page.locator("figure.chart summary").click()
    rows = page.locator("figure.chart table tbody tr")
    rows.first.wait_for()  # it is made when the fold opens
    kinds = Counter(row.locator("td").nth(1).inner_text() for row in rows.all())
    assert (kinds["night"], kinds["session"]) == (len(nights), sum(int(night[4]) for night in nights))
    points = "[...document.querySelectorAll('.drawing path')].filter((each) => each.ariaLabel?.includes('time of'))"
    assert page.evaluate(f"{points}.length") >= kinds["session"]


def test_the_policy_of_live_pages_allows_all_that_they_do(chromium: Any, site: Path) -> None:
    # given the files behind a server whose answers have the policy
    page, wrong = chromium.new_page(), []
    page.on("console", lambda message: wrong.append(message.text))
    headers = {"Content-Security-Policy": SITE_POLICY, "X-Content-Type-Options": "nosniff"}
    answer = lambda route: route.fulfill(path=site / urlsplit(route.request.url).path[1:], headers=headers)  # noqa: E731
    page.route("http://farm.example/**", answer)
    for address in examples(site):
        open_page(page, "http://farm.example", address)
    assert wrong == []
    script = "Object.assign(document.createElement('script'), {textContent: 'window.acted = 1'})"
    page.evaluate(f"document.head.append({script})")
    assert page.evaluate("window.acted") is None
    page.close()
