"""README and docs are true: commands parse, queries run, files are valid, links and names lead somewhere."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from devices.errors import InputError
from devices.inventory import Inventory
from docs.reference_pages import reference_pages
from flows.cli.main import app
from flows.cli.sql import named_question, parse_options, sql_question
from sql.warehouse import query as ask
from tasks.measure.sweep_file import read_sweep
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import BundleMaker

FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FILES += [ROOT / "deployments/README.md", ROOT / "tests/lab/README.md"]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
ALL = "\n".join(PAGES.values())
REFERENCE = {f"docs/reference/{name}": text for name, text in reference_pages().items()}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
PROSE = FENCE.sub("", "\n".join([ALL, *REFERENCE.values()]))
NAMED = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", PROSE)]


def blocks(language: str, text: str = ALL) -> list[str]:
    return [block for _, named, block in FENCE.findall(text) if named == language]


ETFARM: Any = typer.main.get_command(app)


def command_of(written: str) -> tuple[Any, list[str]]:
    """The command itself, and the words after its name."""
    command, words = ETFARM, shlex.split(written)[1:]
    while words and (below := getattr(command, "commands", {}).get(words[0])):
        command, words = below, words[1:]
    assert not hasattr(command, "commands") or not words or words[0].startswith("-"), f"unknown command: {written}"
    return command, words


def in_shell_blocks(text: str = ALL) -> list[str]:
    """Return every command of etfarm that a shell block has, in the order of the pages."""
    commands: list[str] = []
    for line in "\n".join(blocks("sh", text)).splitlines():
        commands.extend(re.findall(r"\$\((etfarm [^)]+)\)", line))
        words = shlex.split(line, comments=True)
        for command in re.split(r" '(?:&&|[|>])' ", shlex.join(words)):
            called = re.match(r"(?:'?\w+=\S+ )*(?:\S*/bin/)?(etfarm .*)", command)
            commands.extend([called[1]] if called else [])
    return list(dict.fromkeys(commands))


SHELL = in_shell_blocks()


def test_every_command_in_a_shell_block_can_be_typed_as_it_stands() -> None:
    assert len(SHELL) > 50
    for written in SHELL + in_shell_blocks(REFERENCE["docs/reference/commands.md"]):
        command, words = command_of(written)
        try:
            typed = command.make_context("etfarm", words)
            if text := typed.params.get("query"):
                parse_options(named_question(text) or sql_question(text), typed.args)
        except (typer.exceptions.TyperException, InputError) as error:
            pytest.fail(f"{written}: {error}")


def test_every_command_in_a_sentence_exists_with_its_options() -> None:
    for written in [code for code in NAMED if code.startswith("etfarm ")]:
        command, words = command_of(written)
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= options, written


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # given a slow device, and an emulated one with a time that would come first
    maker = BundleMaker(tmp_path_factory.mktemp("warehouse"))
    maker.session([9_000_000], model__name="measured", device__name="real")
    maker.session([1_000_000], model__name="emulated", device__name="phone", device__emulated=True)
    maker.load()
    return maker.warehouse


def test_every_query_runs_and_ranks_no_emulated_device(warehouse: Path) -> None:
    queries = {
        word for written in SHELL if written.startswith("etfarm sql ") for word in shlex.split(written) if " " in word
    }
    assert len(queries) >= 4
    for query in queries:
        columns, rows = ask(warehouse, query)
        assert columns
        if "ORDER BY" in query:
            assert [row[columns.index("model")] for row in rows] == ["measured"], query


def test_every_sweep_file_and_inventory_is_valid(tmp_path: Path) -> None:
    # given the files that entries name, beside the sweep
    for name in (
        "model.py",
        "lin.pte",
        "in0.bin",
        "ref.bin",
        "lin.etrecord",
        "prompt.txt",
        "weights/config.json",
        "images/0.npy",
        *(f"mobilenet_v2_coreml/{file}" for file in ("model.pte", "input-0.bin", "output-0.bin")),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "model.py").write_text("def make(): ...\ndef detector(): ...\n")
    kinds = set()
    for text in blocks("yaml"):
        written = yaml.safe_load(text)
        if isinstance(written.get("devices"), list):
            assert Inventory.model_validate(written).devices
            kinds.add("inventory")
        elif "models" in written:
            (tmp_path / "sweep.yaml").write_text(text if "name" in written else f"name: a\n{text}")
            assert read_sweep(tmp_path / "sweep.yaml").models
            kinds.add("sweep")
    assert kinds == {"inventory", "sweep"}


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_link_leads_to_a_file_and_to_a_heading_of_it() -> None:
    broken = []
    for page, text in (PAGES | REFERENCE).items():
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
            path = (ROOT / page).parent / target if target else ROOT / page
            headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE) if anchor else []
            if not path.exists() or (anchor and anchor not in map(slug, headings)):
                broken.append(f"{page}: {target}#{anchor}")
    assert broken == []


def test_every_path_module_and_make_target_that_is_named_exists() -> None:
    paths = [code for code in NAMED if re.match(r"(flows|tasks|devices|sql|deployments|tests|docs)/[^<>*]*$", code)]
    modules = re.findall(r"-m (tests(?:\.\w+)+)", ALL)
    paths += [f"{each.replace('.', '/')}/__main__.py" for each in modules if (ROOT / each.replace(".", "/")).is_dir()]
    paths += [f"{each.replace('.', '/')}.py" for each in modules if not (ROOT / each.replace(".", "/")).is_dir()]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?<![\w:])make ([a-z][a-z-]*)", "\n".join(blocks("sh") + NAMED))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_what_contributors_change_is_in_the_file_that_the_table_names() -> None:
    table = PAGES["docs/CONTRIBUTING.md"].partition("| to add | change |")[2].partition("\n## ")[0]
    assert len(table.splitlines()) > 20
    for *names, path in re.findall(r"`(\w+)`(?: or `(\w+)`)? in `([^`]+)`", table):
        # In Python the name is defined there; in SQL, CSV and C++ it stands there as a word.
        begin = r"^(class |def )?" if path.endswith(".py") else r"\b"
        for name in filter(None, names):
            text = (ROOT / path).read_text(encoding="utf-8")
            assert re.search(rf"{begin}{name}\b", text, re.MULTILINE), f"{name} in {path}"


def test_every_public_view_is_in_the_list_of_views() -> None:
    views = {path.stem for path in (ROOT / "sql/views").rglob("[a-z]*.sql")}
    assert views - set(re.findall(r"`(\w+)`", PAGES["docs/sql.md"])) == set()


def test_the_readme_is_short_and_leads_to_every_page_as_the_menu_does() -> None:
    readme, menu = PAGES["README.md"], (ROOT / "docs/conf.py").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 160
    pages = [page for page in PAGES | REFERENCE if page.startswith("docs/")]
    stems = {page: page.removeprefix("docs/").removesuffix(".md") for page in pages}
    assert [page for page, stem in stems.items() if f"]({page})" not in readme or f'"{stem}"' not in menu] == []
