"""The layers: imports run one way, no modules import each other in a circle."""

import ast
import functools
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

from tests.fixtures.paths import ROOT

# What each layer may import of ours, besides itself.
ALLOWED: dict[str, set[str]] = {
    "flows": {"tasks", "devices", "sql"},
    "tasks": {"devices", "sql"},
    "devices": set(),
    "sql": set(),
    "deployments": {"devices", "tasks"},
}
# The packages of `tasks`, in the order in which the data flows: each may import those above it in this list.
TASKS = [
    "tasks.bundle",
    "tasks.etdump",
    "tasks.store",
    "tasks.rows",
    "tasks.export",
    "tasks.runner",
    "tasks.measure",
    "tasks.judge",
    "tasks.load",
    "tasks.results",
    "tasks.pages",
    "tasks.maintain",
]
# The same for packages: each may import those named here; files at the top of a layer are free.
PACKAGES: dict[str, set[str]] = {
    "devices.adb": {"devices.ssh"},
    "devices.ssh": set(),
    "devices.ondevice": set(),
    **{package: set(TASKS[:position]) for position, package in enumerate(TASKS)},
    "flows.server": set(),
    "flows.setup": {"flows.server"},
    "flows.warehouse": set(),
    "flows.status": {"flows.server", "flows.warehouse"},
    "flows.device": {"flows.server", "flows.status"},
    "flows.comparison": {"flows.device", "flows.server", "flows.warehouse"},
    "flows.certify": {"flows.warehouse"},
    "flows.labs": {"flows.device", "flows.server", "flows.setup", "flows.status"},
    "flows.deployed": {"flows.device", "flows.server", "flows.setup", "flows.warehouse"},
    "flows.cli": {
        f"flows.{package}"
        for package in ("certify", "comparison", "device", "labs", "server", "setup", "status", "warehouse")
    },
}
# The only packages that may import these, inside the function that needs them: a worker beside phones has neither.
HEAVY = {"torch", "executorch", "transformers", "torchao"}
HEAVY_PACKAGES = ("tasks/export/", "tasks/runner/")
MAX_FILES = 20
COMMANDS = ROOT / "flows" / "cli"  # a command is a file
# All that flows and deployments may use of the pages: the writers of a medium, and whole documents. Their content
# comes from `tasks.results`, so that no medium depends on the page of another.
WRITERS = {f"tasks.pages.{name}" for name in ("benchmarks", "comment", "comparison", "explanation", "markdown", "rows")}
WRITERS |= {
    f"tasks.pages.{name}"
    for name in (
        "notify",
        "report",
        "upgrade",
        "html",
        "page",
        "site.site",
        "site.publish",
        "answer_table",
        "terminal_table",
    )
}
# What opens a warehouse; pages get a reader.
OPENING = {"duckdb", "sql.cage", "sql.warehouse", "sql.readable"}
OPENERS = {"open_reader", "open_answers", "open_readable", "open_read_only"}


# These are read when the first test needs them: every worker imports this file.
@functools.cache
def graph() -> grimp.ImportGraph:
    """Return the imports of all layers; every import counts, also one inside a function."""
    return grimp.build_graph(*ALLOWED, cache_dir=None)


@functools.cache
def modules() -> dict[str, Path]:
    return {
        module: next(path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file())
        for module in sorted(graph().modules)
        for base in [ROOT.joinpath(*module.split("."))]
    }


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_bytes()) for path in modules().values()}


def parent(module: str, depth: int) -> str:
    return ".".join(module.split(".")[:depth])


def imports_against(allowed: dict[str, set[str]], package: str) -> list[str]:
    """The imports of a layer or package from others of the same depth that it may not import."""
    depth = package.count(".") + 1
    return [
        f"{module} -> {other}"
        for module in modules()
        if parent(module, depth) == package
        for other in sorted(graph().find_modules_directly_imported_by(module))
        if parent(other, depth) in allowed
        and parent(other, depth - 1) == parent(package, depth - 1)
        and parent(other, depth) not in allowed[package] | {package}
    ]


def test_a_layer_or_package_imports_only_from_those_below_it() -> None:
    for allowed in (ALLOWED, PACKAGES):
        assert [wrong for package in allowed for wrong in imports_against(allowed, package)] == []


def test_every_package_is_in_these_maps() -> None:
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("*/**/__init__.py")}
    ours = {name for name in found if name.split(".")[0] in ("flows", "tasks", "devices") and "." in name}
    assert {name for name in ours if name.count(".") == 1} == set(PACKAGES)


def test_no_files_need_each_other_in_a_circle() -> None:
    imported = {module: graph().find_modules_directly_imported_by(module) for module in modules()}
    circle: list[str] = []
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


def test_no_folder_has_more_than_20_files() -> None:
    folders = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    assert [str(folder) for folder, count in folders.items() if count > MAX_FILES and folder != COMMANDS] == []


def test_only_exporting_and_building_runners_need_torch_or_executorch() -> None:
    found = []
    for file, tree in trees().items():
        at_the_top = {id(node) for node in tree.body}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy = isinstance(node, ast.stmt) and HEAVY & {name.split(".")[0] for name in names}
            if heavy and (not file.startswith(HEAVY_PACKAGES) or id(node) in at_the_top):
                found.append(f"{file}: {ast.unparse(node)}")
    assert found == []


def test_flows_and_deployments_use_no_page_but_its_writers() -> None:
    pages = {
        (name, other)
        for name in modules()
        if parent(name, 1) in ("flows", "deployments")
        for other in graph().find_modules_directly_imported_by(name)
        if parent(other, 2) == "tasks.pages"
    }
    assert sorted(f"{name} -> {other}" for name, other in pages if other not in WRITERS) == []
    assert WRITERS - {other for _, other in pages} == set()


def test_no_page_opens_a_warehouse() -> None:
    opening = []
    for name, path in modules().items():
        for node in ast.walk(trees()[path.relative_to(ROOT).as_posix()]) if parent(name, 2) == "tasks.pages" else ():
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set[str]()
            opens = {parent(each, 2) for each in imported} & OPENING or names & OPENERS
            if opens and names != {"distinct_names"}:  # a function on texts
                opening.append(f"{name}: {ast.unparse(node)}")
    assert opening == []


def test_only_commands_flows_and_tools_of_agents_take_more_than_six_parameters() -> None:
    many = []
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                is_called_by_people = any(
                    re.match(r"\w*\.?(command|flow)\b", ast.unparse(d)) for d in node.decorator_list
                )
                if len([name for name in names if name != "self"]) > 6 and not is_called_by_people:
                    many.append(f"{file}: {node.name}")
    assert many == ["flows/cli/mcp_tools.py: compare"]
