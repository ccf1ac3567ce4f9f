"""The published folder in a real browser, opened without any server: everything works and nothing is fetched."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tasks.pages.html import SITE_POLICY
from tasks.results.changes import geometric_mean
from tests.fixtures.browser import chromium_started, violations
from tests.fixtures.needs import needs
from tests.fixtures.pages import read_page
from tests.fixtures.publications import publish_site

pytestmark = pytest.mark.thorough
KINDS = ("index.html", "nights.html", "models.html", "devices.html", "sme2.html", "runners.html", "compare.html")
FOLDERS = (
    "nights",
    "sweeps",
    "models",
    "devices",
    "sessions",
    "cells",
    "comparisons",
    "comparisons/device",
    "comparisons/cells",
)
DEVICE = "devices/phone-001.html"


@pytest.fixture(scope="module")
def site(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("chromium")
    folder: Path = tmp_path_factory.mktemp("site")
    publish_site(warehouse, str(folder))
    return folder


@pytest.fixture(scope="module")
def chromium(site: Path) -> Iterator[Any]:
    with chromium_started() as browser:
        yield browser


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
    """Open a page from its file or from a server, and wait until a history is drawn."""
    page.goto(f"{site if isinstance(site, str) else site.as_uri()}/{address}")
    if "?series=" in address:
        page.locator("#nights-table table").first.wait_for(state="attached")


def test_every_kind_of_page_is_accessible_in_light_and_dark_and_fits_a_phone(page: Any, site: Path) -> None:
    for address in examples(site):
        page.set_viewport_size({"width": 1280, "height": 900})
        open_page(page, site, address)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == [], (address, scheme)
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


def test_the_heat_map_shows_the_chosen_figure_and_rows_and_the_address_keeps_them(page: Any, site: Path) -> None:
    open_page(page, site, "index.html")
    rows = page.locator("#matrix tbody tr:visible")
    every, times = rows.count(), rows.all_inner_texts()
    # given counts of cells without a change, which the script writes as the page has them
    written = re.findall(r'data-rest="([^"]*)"', (site / "index.html").read_text(encoding="utf-8"))
    assert rows.locator("th").evaluate_all("heads => heads.map((head) => head.dataset.rest)") == written
    # when another figure and one precision are chosen
    page.locator("#matrix").get_by_label("Figure").select_option("peak memory")
    page.locator("#matrix").get_by_label("Precision").select_option("fp16")
    shown = rows.count()
    # then only its rows are shown, with their cells, the others are counted, and the address keeps the choice
    assert 0 < shown < every
    assert f"{shown} of {every} rows, {every - shown} hidden" in page.locator("#matrix .count").inner_text()
    texts = rows.all_inner_texts()
    assert not set(texts) <= set(times)
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    assert rows.all_inner_texts() == texts
    # and arrow keys lead from a cell to the next one, which is described
    page.goto(f"{site.as_uri()}/index.html")
    page.locator("#matrix td a").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.at") == "1"
    assert " on phone-00" in page.locator("#matrix .detail").inner_text()
    # and a change leads to its series, and so does a cell without one
    for cell in ("td[class*=worse] a", "td:not([class]) a"):
        page.goto(f"{site.as_uri()}/index.html")
        linked = page.locator(f"#matrix {cell}").first
        linked.focus()
        model = page.locator("#matrix .detail").inner_text().split()[0]
        linked.click()
        page.wait_for_url("**/devices/*.html?series=*")
        page.locator("#nights-table table").first.wait_for(state="attached")
        assert page.locator("h1").inner_text().startswith(f"{model} ")


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


def test_a_history_is_drawn_from_its_files_with_a_mark_for_each_row_of_its_tables(page: Any, site: Path) -> None:
    # when a series is chosen by its address, then the page is that of the series, with the newest verdict first
    open_page(page, site, history_of(site, "bert_03"))
    assert page.locator("h1").inner_text().startswith("bert_03 ")
    assert "regression since 2026-11-20" in page.locator(".answer").inner_text()
    assert not page.locator("#facts").is_visible()
    # and each mark of the chart is a row of a table: a night of that of nights, a session of that in the fold
    nights = [row.locator("td").all_inner_texts() for row in page.locator("#nights-table > .scroll tbody tr").all()]
    assert (len(nights), nights[0][0], nights[0][3]) == (12, "2026-11-20", "▲ regression")
    assert page.locator("svg.history path.night").count() == len(nights)
    page.locator("#nights-table details summary").click()
    sessions = page.locator("#nights-table details tbody tr")
    sessions.first.wait_for()  # they are written when the fold opens
    assert sessions.count() == page.locator("svg.history .session").count() == sum(int(night[4]) for night in nights)
    # and below are the cause, a command that a button copies, and the layers before and after
    assert "Cause" in page.locator("#why table").inner_text()
    assert page.locator("#why .command button").count() > 0
    assert page.locator("#layers tbody tr").first.inner_text()
    # and the onset of its incident has a label
    assert "slower" in page.locator("svg.history .onset text").text_content()


def test_the_keyboard_leads_through_the_chart_and_two_nights_are_put_side_by_side(page: Any, site: Path) -> None:
    open_page(page, site, history_of(site, "bert_03"))
    cursor = page.locator("svg.history .cursor")
    cursor.focus()
    assert cursor.get_attribute("aria-label").startswith("2026-11-20: ")
    # and from a night to its sessions, whose pages Enter opens
    page.keyboard.press("ArrowDown")
    session = cursor.get_attribute("aria-label").split()[1]
    assert cursor.get_attribute("href").endswith(f"sessions/{session}.html")
    page.keyboard.press("ArrowUp")
    # when arrows lead two nights back and Enter picks it, then it stands beside the newest one
    for key in ("ArrowLeft", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**a=2026-11-18&b=2026-11-20**")
    heads = page.locator("#pair thead th").all_inner_texts()
    assert heads[1:3] == ["2026-11-18", "2026-11-20"]
    # and the keyboard is still at that night
    assert cursor.get_attribute("aria-label").startswith("2026-11-18: ")
    # and the address is a link to this view
    page.goto("about:blank")
    page.go_back()
    page.locator("#pair table").wait_for()
    assert page.locator("#pair thead th").all_inner_texts() == heads


def test_another_figure_and_fewer_nights_are_chosen_and_the_address_keeps_both(page: Any, site: Path) -> None:
    open_page(page, site, history_of(site, "bert_03"))
    # when the peak memory is chosen, then the chart and the table of nights have it
    page.get_by_label("Figure").select_option("peak memory")
    page.locator("#nights-table").get_by_text("Peak memory (MB)").wait_for()
    assert page.locator("figcaption").first.inner_text() == "Peak memory in MB, night by night"
    # when the mouse is drawn over a part of the nights, then only these are left
    box = page.locator("svg.history").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 150, steps=3)
    page.mouse.up()
    page.wait_for_url("**figure=peak+memory&range=2026-11-**..2026-11-20")
    assert 2 < page.locator("svg.history path.night").count() < 12
    # and a share changes by points, as everywhere
    page.get_by_label("Figure").select_option("portable share")
    assert "Change (points)" in page.locator("#nights-table table thead").inner_text()


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


def test_the_form_refuses_as_the_terminal_does_and_copies_the_command(page: Any, site: Path) -> None:
    # when the form has one thing twice, or a pair that is not published, then it has the sentence or the command
    open_page(page, site, "compare.html")
    form = page.locator("form.choice")
    form.locator("[name=kind]").select_option(label="Models")
    form.locator("[name=b]").select_option(index=0)
    compare = form.get_by_role("button", name="Compare", exact=True)
    compare.click()
    assert form.get_by_role("status").first.inner_text() == "A and B are the same model (bert_03); name two."
    form.locator("[name=b]").select_option(label="vit_02 (command only)")
    compare.click()
    assert form.locator(".command code").inner_text() == "etfarm compare model:bert_03 model:vit_02"
    form.get_by_role("button", name="Copy etfarm compare model:bert_03 model:vit_02").click()
    form.get_by_text("copied").wait_for()


def test_a_filter_of_a_comparison_hides_lines_of_its_picture_and_computes_the_mean_again(page: Any, site: Path) -> None:
    # when two devices are compared, for one precision
    open_page(page, site, "compare.html")
    form = page.locator("form.choice")
    form.locator("[name=kind]").select_option(label="Devices")
    form.locator("[name=precision]").select_option("fp16")
    form.get_by_role("button").click()
    page.wait_for_url("**/comparisons/device/phone-001..phone-002.html?t0.Precision=fp16")
    # then the picture has the lines of the rows that are shown, and the mean is that of their ratios
    of_answers = "(cells) => cells.filter((cell) => /faster|slower|inconclusive/.test(cell.textContent))"
    cells = page.locator("main table").first.locator("tbody tr:visible td[data-sort]")
    ratios = list(map(float, cells.evaluate_all(f"(cells) => ({of_answers})(cells).map((cell) => cell.dataset.sort)")))
    lines = page.locator(".intervals li:visible")
    assert 1 < lines.count() == len(ratios) < page.locator(".intervals li").count()
    expected = geometric_mean(ratios)
    assert expected is not None
    text = page.locator(".mean").inner_text()
    assert text == f"{str(expected).replace(f'{len(ratios)} series', f'the {len(ratios)} series shown')}"


def test_an_icicle_zooms_by_click_and_keyboard_and_the_address_keeps_the_part(page: Any, site: Path) -> None:
    # given a model that got slower, whose parts have the sign of their change
    open_page(page, site, "models/bert_03.html")
    drawing = page.locator("figure.icicle").first
    frames = drawing.locator("[role=button]")
    assert "\u25b2 +" in frames.first.locator("text").text_content()
    # when the keyboard leads to a module and zooms, then that is as wide as the drawing, and its time is written
    frames.first.focus()
    page.keyboard.press("ArrowDown")
    name = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    part = frames.nth(1)
    assert (part.get_attribute("aria-label"), part.get_attribute("width")) == (name, "100%")
    assert drawing.locator("output").inner_text() == name
    # and the address is a link to this view
    link = page.url
    assert name.split(": ")[0] in link
    page.goto("about:blank")
    page.goto(link)
    drawing.get_by_role("button", name="Show all").wait_for()
    assert frames.nth(1).get_attribute("width") == "100%"
    # and a click on what contains it, or Escape, goes back
    drawing.get_by_role("button", name="Show all").click()
    assert "icicle-" not in page.url
    frames.nth(1).click()
    assert page.url == link
    page.keyboard.press("Escape")
    assert "icicle-" not in page.url


def test_the_csv_of_a_table_has_the_rows_shown_and_the_columns_of_its_caption(page: Any, site: Path) -> None:
    # given a table whose caption has what all rows share, and a filter that hides some of its rows
    open_page(page, site, "models/bert_03.html")
    table = page.locator("main table:has(caption [data-at])").filter(has=page.locator("tbody tr:nth-child(2)")).first
    common = {each.get_attribute("data-head"): each.text_content() for each in table.locator("caption [data-at]").all()}
    # when its CSV is downloaded, from a page that was opened from a folder
    fold = table.locator("xpath=ancestor::details[not(@open)]")
    for each in reversed(fold.all()):
        each.locator("summary").first.click()
    with page.expect_download() as download:
        table.locator("xpath=../following-sibling::*[1]").get_by_role("button", name="CSV").click()
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        heads, *rows = csv.reader(file)
    # then it has each row, with the shared columns at their places, and numbers without separators
    assert len(rows) == table.locator("tbody tr:visible").count() > 1
    assert common.items() <= dict(zip(heads, rows[0], strict=True)).items()
    assert all(len(row) == len(heads) for row in rows)


def test_on_a_phone_a_row_is_a_card_and_more_shows_the_rest(page: Any, site: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, site, "nights/2026-11-20.html")
    row = page.locator("main section > .scroll tbody tr:has(button.more)").first
    folded_height = row.bounding_box()["height"]
    row.get_by_role("button", name="more").click()
    assert row.get_by_role("button", name="less").get_attribute("aria-expanded") == "true"
    assert folded_height < row.bounding_box()["height"]


def test_the_head_of_a_table_stays_in_view_while_the_page_scrolls(page: Any, site: Path) -> None:
    open_page(page, site, "nights.html")
    page.set_viewport_size({"width": 1280, "height": 300})
    page.locator("main table tbody tr").nth(11).evaluate("(row) => row.scrollIntoView({block: 'end'})")
    head = page.locator("main table thead th").first
    assert page.evaluate("scrollY") > 100
    assert head.bounding_box()["y"] == pytest.approx(0, abs=2)
