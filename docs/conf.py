"""Sphinx: README and the manual as a site that opens offline. The checkout's root is the source, so links stay true."""

from typing import Any

project = "etfarm"
html_title = "etfarm"
extensions = ["myst_parser"]
myst_heading_anchors = 3
root_doc = "README"
# The pages in the order of the menu; the READMEs of packages are found by links and by search.
PAGES = {
    "Use": [
        "pages",
        "models",
        "llm",
        "sweeps",
        "delegates",
        "devices",
        "sme",
        "sql",
        "numbers",
        "failures",
        "glossary",
        "pull-requests",
    ],
    "Reference": ["reference/commands", "reference/files", "reference/values"],
    "Programs and agents": ["json", "mcp", "mcp-conversation"],
    "Skills": ["skills/README"],
    "Maintain": ["operations", "scale", "prefect", "trust"],
    "Change": ["CONTRIBUTING"],
}
include_patterns = [
    "README.md",
    "docs/*.md",
    "docs/reference/*.md",
    "docs/skills/*.md",
    "docs/skills/*/*.md",
    "*/README.md",
]
include_patterns += ["sql/DICTIONARY.md", "tests/lab/README.md"]
exclude_patterns = [".*", "var", "build"]  # never entered
suppress_warnings = ["toc.not_included"]
html_theme = "furo"
html_static_path = ["theme"]
html_css_files = ["manual.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


def _add_menu(_app: Any, page: str, source: list[str]) -> None:
    if page == root_doc:
        for title, names in PAGES.items():
            entries = "\n".join(f"docs/{name}" for name in names)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"


# What the theme leaves out for readers by ear and by keyboard.
ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="Sections">',
    '<aside class="toc-drawer no-toc">': '<aside class="toc-drawer no-toc" aria-label="Sections">',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    "<pre>": '<pre tabindex="0">',
    '<div id="search-results"></div>': '<h1>Search</h1><div id="search-results" ></div>',
}


def _make_accessible(app: Any, error: Exception | None) -> None:
    for page in [] if error else app.outdir.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for theirs, ours in ACCESSIBLE.items():
            text = text.replace(theirs, ours)
        page.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """Give the README, as the first page, the menu of all pages, and all pages what screen readers need."""
    app.connect("source-read", _add_menu)
    app.connect("build-finished", _make_accessible)
