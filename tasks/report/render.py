"""The report of a sweep: what people read in the morning, as one HTML file and as Markdown."""

import logging
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tasks.files import write_whole
from tasks.report.data import Answers, ReportError, ask
from tasks.report.html import as_html
from tasks.report.markdown import as_markdown
from tasks.report.page import Page
from tasks.report.sections.accuracy import accuracy
from tasks.report.sections.advice import advice
from tasks.report.sections.failures import failures
from tasks.report.sections.head import figures, subtitle, summary, title
from tasks.report.sections.latency import latency
from tasks.report.sections.portable import portable
from tasks.report.sections.provenance import provenance
from tasks.report.sections.sme2 import sme2
from tasks.report.sections.time import categories, operators

__all__ = ["ReportError", "render_report"]

_log = logging.getLogger(__name__)
_SECTIONS = (latency, sme2, categories, operators, portable, advice, accuracy, failures, provenance)


def render_report(snapshot: Path, sweep_id: str | None, reports_dir: Path) -> Path:
    """Write `reports_dir/<sweep_id>/report.html` and `report.md`, each whole; returns the path of the HTML.

    `snapshot` is a warehouse file; None as `sweep_id` takes its newest sweep. Raises ReportError where it holds no such
    sweep or the disk refuses, WarehouseError where it cannot be read.
    """
    answers = ask(snapshot, sweep_id)
    name = str(answers.sweep["sweep_id"])
    if name != Path(name).name or name == "..":
        raise ReportError(
            f"{snapshot}: the sweep `{name}` cannot give its report a folder; bundles with it were made elsewhere"
        )
    page = _page(answers, snapshot)
    folder = reports_dir / name
    html = folder / "report.html"
    try:
        write_whole(html.with_suffix(".md"), as_markdown(page).encode())
        write_whole(html, as_html(page).encode())
    except OSError as error:
        raise ReportError(f"{folder}: the report could not be written ({error.strerror or error})") from None
    _log.info("report of %s: %s", answers.sweep["sweep_id"], html)
    return html


def _page(answers: Answers, snapshot: Path) -> Page:
    made = f"Made by etfarm {version('etfarm')} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC from {snapshot.name}."
    return Page(
        title=title(answers),
        subtitle=subtitle(answers),
        figures=figures(answers),
        summary=summary(answers),
        sections=[section(answers) for section in _SECTIONS],
        footer=made,
    )
