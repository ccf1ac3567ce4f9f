"""Sphinx: README and the manual as a site that opens offline. The checkout's root is the source, so links stay true."""

from typing import Any

project = "etfarm"
html_title = "etfarm"
extensions = ["myst_parser"]
myst_heading_anchors = 3
root_doc = "README"
# The pages in the order of the menu; the READMEs of packages are found by links and by search.
PAGES = {
    "Use": ["models", "llm", "sweeps", "devices", "sme", "sql", "numbers", "failures", "glossary", "pull-requests"],
    "Programs and agents": ["json", "mcp", "mcp-conversation"],
    "Skills": ["skills/README"],
    "Maintain": ["operations", "scale", "prefect", "trust"],
    "Change": ["CONTRIBUTING"],
}
include_patterns = ["README.md", "docs/*.md", "docs/skills/*.md", "docs/skills/*/*.md", "*/README.md"]
include_patterns += ["sql/DICTIONARY.md", "tests/lab/README.md"]
exclude_patterns = [".*", "var", "build"]  # never entered
suppress_warnings = ["toc.not_included"]
html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


def _add_menu(_app: Any, page: str, source: list[str]) -> None:
    if page == root_doc:
        for title, names in PAGES.items():
            entries = "\n".join(f"docs/{name}" for name in names)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"


def setup(app: Any) -> None:
    """Give the README, as the first page, the menu of all pages."""
    app.connect("source-read", _add_menu)
