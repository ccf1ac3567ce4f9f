"""The layers: imports run one way, no modules import each other in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter

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
    "flows.device": {"flows.server"},
    "flows.comparison": {"flows.device", "flows.server", "flows.warehouse"},
    "flows.certify": {"flows.warehouse"},
    "flows.labs": {"flows.device", "flows.server", "flows.setup"},
    "flows.deployed": {"flows.device", "flows.server", "flows.setup", "flows.warehouse"},
    "flows.cli": {
        f"flows.{package}" for package in ("certify", "comparison", "device", "labs", "server", "setup", "warehouse")
    },
}
# The only packages that may import these, inside the function that needs them: a worker beside phones has neither.
HEAVY = {"torch", "executorch", "transformers", "torchao"}
HEAVY_PACKAGES = ("tasks/export/", "tasks/runner/")


# Every import counts, also one inside a function.
GRAPH = grimp.build_graph(*ALLOWED, cache_dir=None)
MODULES = {
    module: next(path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file())
    for module in sorted(GRAPH.modules)
    for base in [ROOT.joinpath(*module.split("."))]
}


TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_bytes()) for path in MODULES.values()}


def parent(module: str, depth: int) -> str:
    return ".".join(module.split(".")[:depth])


def imports_against(allowed: dict[str, set[str]], package: str) -> list[str]:
    """The imports of a layer or package from others of the same depth that it may not import."""
    depth = package.count(".") + 1
    return [
        f"{module} -> {other}"
        for module in MODULES
        if parent(module, depth) == package
        for other in sorted(GRAPH.find_modules_directly_imported_by(module))
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
    graph = {module: GRAPH.find_modules_directly_imported_by(module) for module in MODULES}
    circle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


def test_only_exporting_and_building_runners_need_torch_or_executorch() -> None:
    found = []
    for file, tree in TREES.items():
        at_the_top = {id(node) for node in tree.body}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy = isinstance(node, ast.stmt) and HEAVY & {name.split(".")[0] for name in names}
            if heavy and (not file.startswith(HEAVY_PACKAGES) or id(node) in at_the_top):
                found.append(f"{file}: {ast.unparse(node)}")
    assert found == []
