"""The page of all runners."""

from tasks.pages.page import MAX_LISTED, Page, Section
from tasks.results.provenance import ONLY_OF_A_SWEEP, read_runners
from tasks.results.reader import Reader
from tasks.results.table import first_rows
from tasks.results.text import counted


def list_page(reader: Reader) -> Page:
    rows = read_runners(reader)
    table = first_rows(rows, MAX_LISTED, "etfarm sql lists all: runner_overview", without=ONLY_OF_A_SWEEP)
    return Page("Runners", [Section("all", "All", [table])], answer=f"{counted(len(rows), 'runner').capitalize()}.")
