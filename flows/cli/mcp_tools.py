"""The tools of `etfarm mcp`: answers from the newest snapshot as bounded JSON in which texts of others are marked."""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from devices.errors import InputError
from devices.suggest import did_you_mean
from flows.cli.mcp_marking import FOREIGN, MAX_ROWS, bounded, columns_and_rows, marked, page_of, table_of
from flows.cli.sql import named_question, parse_options, resolve_names, sql_question
from flows.cli.trace_output import write_trace
from flows.warehouse.readable import readable_warehouse, warehouse_reader
from sql.cage.cage import distinct_names
from sql.cage.limits import Limits
from sql.cage.warm import WarmCage
from sql.dictionary import read_relations
from sql.question import questions
from sql.warehouse import query_errors
from tasks.judge.figures import METRICS
from tasks.results.changes import worst_first
from tasks.results.compare import compare_arms
from tasks.results.explanation import explain
from tasks.results.incidents import open_incidents, read_incidents
from tasks.results.night import night_headline
from tasks.results.pair_json import write_pair
from tasks.results.sessions import RunRow, read_sessions
from tasks.results.verdicts import VerdictRow, read_night
from tasks.store.workspace import Workspace

LIMITS = Limits(max_s=60.0, max_bytes=64 << 20)
_LOG_CHARS = 8_000
_LOGS = ("stderr.txt", "stdout.txt", "logcat.txt")
_UNITS = {
    "_ms": "milliseconds; time_ms is that of one run, Method::execute",
    "share": "of Method::execute, 0 to 1",
    "ratio": "after / before: above 1 is more",
    "low, high": "95 % interval of the ratio, from sessions; null below 5",
    "sessions": "n: processes of the runner that the figure is from",
    "noise_floor": "how much the figure moves from night to night without a change, a fraction",
}


_Offset = Annotated[int, Field(ge=0, description="Rows to skip: `next_offset` of the answer before.")]
_Limit = Annotated[int, Field(ge=1, le=MAX_ROWS, description="Rows at most.")]
_SessionId = Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="Id of a session.")]
_Text = Annotated[str, Field(max_length=20_000)]
_Only = Annotated[str | None, Field(max_length=300, description="Only this one.")]


class Tools:
    """Tools that answer from the newest snapshot of one farm."""

    def __init__(self, workspace: Workspace, traces: Path) -> None:
        self._workspace, self._traces = workspace, traces
        self._cages = WarmCage()
        self._explained = set[tuple[str, str]]()
        """Columns and meanings that `sql` has answered already: an agent reads each once."""

    def end(self) -> None:
        """End the queries that run, and answer no other."""
        self._cages.end()

    def functions(self) -> list[Callable[..., dict[str, Any]]]:
        """Return the tools; an agent reads their docstrings."""
        names = ("verdicts", "explain", "compare", "sql", "questions", "describe", "session", "trace")
        return [getattr(self, name) for name in names]

    def verdicts(self, night: _Only = None, offset: _Offset = 0, limit: _Limit = 25) -> dict[str, Any]:
        """What a night changed (the newest if omitted): a row for each series with its verdict, worst first."""
        with warehouse_reader(self._workspace) as reader:
            judged_night, rows = read_night(reader, night)
            incidents = [row.data() for row in open_incidents(read_incidents(reader))]
        answer = marked({"night": judged_night, "answer": night_headline(rows)})
        answer["open_incidents"] = table_of(incidents[:MAX_ROWS])
        return self._with_rows(answer, map(_verdict_as_json, rows), offset, limit)

    def explain(
        self, name: _Text, device: _Only = None, precision: _Only = None, variant: _Only = None
    ) -> dict[str, Any]:
        """Why a model (or the id of a series) got slower or not: verdict, cause, commit, operators, next step."""
        only = {"device": device, "precision": precision, "variant": variant}
        with warehouse_reader(self._workspace) as reader:
            explanation = explain(reader, name, only)
        return self._with_origins({**marked(explanation.data())})

    def compare(
        self,
        a: _Text,
        b: _Text,
        model: _Only = None,
        device: _Only = None,
        precision: _Only = None,
        margin_percent: Annotated[float, Field(ge=0, le=100)] = 1.0,
        offset: _Offset = 0,
        limit: _Limit = 25,
    ) -> dict[str, Any]:
        """How B compares with A, two nights, sweeps, devices, models, precisions, variants (sme2_off), or ids."""
        only = {"model": model, "device": device, "precision": precision}
        with warehouse_reader(self._workspace) as reader, query_errors():
            result = compare_arms(reader, a, b, only=only, margin=margin_percent / 100)
        pairs = map(write_pair, (*worst_first(result.changes), *result.uncompared))
        answer = {"answer": result.headline, "a": result.a, "b": result.b, "remarks": list(result.remarks)}
        return self._with_rows(marked(answer), pairs, offset, limit)

    def sql(
        self, query: _Text, options: dict[str, str] | None = None, offset: _Offset = 0, limit: _Limit = 50
    ) -> dict[str, Any]:
        """Rows of SQL (DuckDB, read-only, 60 s at most) or of a named question, such as slowest-operators, with its
        options, such as {"model": "voice"}. Options of SQL are the values of its $names. Add ORDER BY to read on with
        offset."""
        question = named_question(query) or sql_question(query)
        words = itertools.chain.from_iterable((f"--{name}", value) for name, value in (options or {}).items())
        parameters = parse_options(question, list(words))
        with readable_warehouse(self._workspace) as file, self._cages.cage(file, LIMITS) as cage:
            parameters = resolve_names(question, parameters, cage)
            answer = cage.ask(question.text, parameters, rows=range(offset, offset + limit + 1))
            rows = answer.all_rows()
            columns = list(_describe_columns(distinct_names(answer.columns), question.text))
        names = [column["name"] for column in columns]
        titles = {column["name"]: column["title"] for column in columns if "title" in column}
        page = page_of(names, rows, offset, limit)
        page[FOREIGN] |= {"titles": titles} if titles else {}
        note = {"note": question.if_empty} if question.if_empty and not rows and not offset else {}
        return self._with_origins({"columns": names, **self._explain_columns(columns), **note, **page})

    def _explain_columns(self, columns: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the meanings that no answer before had."""
        meanings = {column["name"]: column["meaning"] for column in columns if "meaning" in column}
        new = {name: text for name, text in meanings.items() if (name, text) not in self._explained}
        self._explained |= new.items()
        return {"meanings": new} if new else {}

    def questions(self) -> dict[str, Any]:
        """The named questions of the tool sql, and their options."""
        rows = [[each.name, each.summary, list(each.parameters)] for each in questions().values()]
        return {"columns": ["name", "meaning", "options"], "rows": rows}

    def describe(self, view: _Only = None) -> dict[str, Any]:
        """The columns of a view with types, units and meanings; without a name, all views, and what units mean."""
        views = read_relations()
        if view is None:
            return {"views": {name: comment for name, (comment, _) in views.items()}, "units": _UNITS}
        if view not in views:
            raise InputError(
                f"unknown view `{view}`{did_you_mean(view, views) or '; describe without a name lists all'}"
            )
        comment, columns = views[view]
        return {"view": view, "meaning": comment, "columns": ["name", "type", "meaning"], "rows": columns}

    def session(self, session_id: _SessionId, log_offset: _Offset = 0) -> dict[str, Any]:
        """One session: how it ended, its runs, conditions and log, and where the time of its cell goes."""
        with warehouse_reader(self._workspace) as reader:
            details = read_sessions(reader, [session_id]).get(session_id)
        if details is None:
            raise InputError(f"no session has the id `{session_id}`; verdicts and sql list ids")
        row = details.facts
        facts = asdict(row)
        times = {} if row.without_times else self._session_times(session_id, row.cell, details.runs)
        bundle = self._workspace.store.find(session_id)
        logs = [bundle / name for name in _LOGS if bundle and (bundle / name).is_file()]
        texts = (f"{file.name}:\n{file.read_text(encoding='utf-8', errors='replace')}\n" for file in logs)
        log = "".join(texts) or facts["log_tail"] or ""
        more = log_offset + _LOG_CHARS
        answer = {
            **marked({name: fact for name, fact in facts.items() if name != "log_tail"}),
            "conditions": table_of(map(asdict, details.conditions)),
            **times,
            "log": {"foreign_text": bounded(log[log_offset:more], _LOG_CHARS)},
            "log_next_offset": more if more < len(log) else None,
            "log_chars": len(log),
        }
        return self._with_origins(answer)

    def trace(self, session_id: _SessionId, run: _Only = None) -> dict[str, Any]:
        """Path of a trace of a session for Perfetto (one run; `run` is an index or all). The server removes it."""
        name = f"{session_id}-{run}" if run and run.isalnum() else session_id
        path = self._traces / f"{name}.json"
        return {
            "path": str(path),
            "answer": write_trace(session_id, run, path, self._workspace.store),
            "session_id": session_id,
        }

    def _session_times(self, session_id: str, cell: str, runs: Sequence[RunRow]) -> dict[str, Any]:
        """Return the figures and the measured runs of a session, and the times of all sessions of its cell.

        The latter are by category and by operator, with at most 15 operators.
        """
        parts = {
            "latency": (
                "SELECT runs, warmup_runs, time_ms, median_ms, mad_ms, iqr_ms, p90_ms, min_ms, max_ms, load_ms, "
                "peak_memory_bytes, has_drift, is_bimodal, accuracy FROM session_latency WHERE session_id = $id",
                session_id,
            ),
            "categories": (
                "SELECT category, time_ms, share, below_resolution, sessions FROM category_share WHERE cell = $id "
                "ORDER BY share DESC",
                cell,
            ),
            "operators": (
                "SELECT operator, kind, category, calls_per_run, time_ms, share, below_resolution, sessions "
                "FROM operator_time WHERE cell = $id ORDER BY share DESC LIMIT 15",
                cell,
            ),
        }
        times = {name: table_of(self._rows(*part)) for name, part in parts.items()}
        return {**times, "runs_ms": marked([run.execute_ms for run in runs if not run.is_warmup])}

    def _rows(self, text: str, ids: str | list[str]) -> list[dict[str, Any]]:
        """Return the rows of a query with the parameter `id`, each as a dictionary by column."""
        with readable_warehouse(self._workspace) as file, self._cages.cage(file, LIMITS) as cage:
            answer = cage.ask(text, {"id": ids})
            return [dict(zip(answer.columns, row, strict=True)) for row in answer.all_rows()]

    def _with_rows(
        self, answer: dict[str, Any], rows: Iterable[dict[str, Any]], offset: int, limit: int
    ) -> dict[str, Any]:
        """Return an answer with a page of its rows, and the origins of their cells."""
        columns, values = columns_and_rows(rows)
        page = page_of(columns, values[offset : offset + limit + 1], offset, limit)
        page[FOREIGN] |= answer.pop(FOREIGN, {})
        places = [place for place, column in enumerate(columns) if column in ("cell", "cell_a", "cell_b")]
        cells = [row[place] for row in values[offset : page["next_offset"]] for place in places]
        return self._with_origins({**answer, **page, "rows_in_all": len(values)}, cells)

    def _with_origins(self, answer: dict[str, Any], cells: Sequence[str | None] = ()) -> dict[str, Any]:
        """Return an answer with the name of the snapshot, and with the sweep and the session ids of each of `cells`."""
        with readable_warehouse(self._workspace) as file:
            name = file.name
        of_cells = (
            "SELECT cell, any_value(sweep_id) AS sweep_id, list(session_id ORDER BY session_id) AS session_ids "
            "FROM session_latency WHERE cell IN (SELECT unnest($id::VARCHAR[])) GROUP BY cell ORDER BY cell"
        )
        cell_ids = [cell for cell in dict.fromkeys(cells) if cell]
        origins = {"cells": table_of(self._rows(of_cells, cell_ids))} if cell_ids else {}
        return {**answer, **origins, "warehouse": name}


def _verdict_as_json(row: VerdictRow) -> dict[str, Any]:
    """Return a verdict as in docs/json.md, but with times in milliseconds, its unit and its ids."""
    unit = METRICS[row.metric].unit
    scale, unit = (1e6, "ms") if unit == "ns" else (1, unit)
    before, after = (None if value is None else value / scale for value in (row.baseline_value, row.value))
    return {**row.data(), "unit": unit, "before": before, "after": after}


def _describe_columns(names: list[str], query: str) -> Iterator[dict[str, Any]]:
    """Yield the name of each column, with its meaning (and unit) if the views of the query agree on it.

    A name that is neither in a view nor in the query comes from data, for example by PIVOT: it is marked as foreign.
    """
    meanings = defaultdict[str, set[str]](set)
    for view, (_, columns) in read_relations().items():
        if re.search(rf"\b{view}\b", query):
            for name, _, meaning in columns:
                meanings[name].add(meaning)
    for place, name in enumerate(names):
        if len(meanings[name]) == 1:
            yield {"name": name, "meaning": next(iter(meanings[name]))}
        elif meanings[name] or name in query:
            yield {"name": name}
        else:
            yield {"name": f"column_{place}", "title": bounded(name)}
