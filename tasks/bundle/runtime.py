"""What a sweep states of ExecuTorch: the version that exports, the version that executes, and run-time options.

They stand in the name of a case, as in `mobilenet_v2@export=1.4.1` and `llama@tg64,runner=1.5.0,load=mmap`, and so
belong to its cells and its series. The farm's own version and the runtime's defaults add nothing to a name: series
survive an upgrade of the farm. The farm gives no model a name with `@`, `=` or a comma.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

EXPORT, RUNNER = "export", "runner"
_WORD = re.compile(r"(?P<key>[a-z][a-z0-9_]*)=(?P<value>[A-Za-z0-9][A-Za-z0-9_.+-]*)")


@dataclass(frozen=True)
class Runtime:
    """The versions and options that a case states; what it does not state is the farm's own, or a default."""

    export: str | None = None
    """Version of ExecuTorch that exports the program."""
    runner: str | None = None
    """Version of ExecuTorch that the runner is built from."""
    options: tuple[tuple[str, str], ...] = ()
    """Name and value of each run-time option, sorted."""

    @property
    def of_run(self) -> str:
        """The words of what executes the program, such as `runner=1.5.0,load=mmap`; empty for the default."""
        runner = [(RUNNER, self.runner)] if self.runner else []
        return ",".join(f"{key}={value}" for key, value in (*runner, *self.options))


def case_name(model: str, *words: str) -> str:
    """Return the name of a case, `model@word,word`; empty words are left out."""
    text = ",".join(filter(None, words))
    return f"{model}{',' if '@' in model else '@'}{text}" if text else model


def base_model(case: str) -> str:
    """Return the name of the model that a case belongs to."""
    return _split(case)[0]


def parse_runtime(case: str) -> Runtime:
    """Return the versions and options in the name of a case."""
    values = {match["key"]: match["value"] for _, match in _words(case) if match}
    options = tuple(sorted((key, value) for key, value in values.items() if key not in (EXPORT, RUNNER)))
    return Runtime(values.get(EXPORT), values.get(RUNNER), options)


def program_name(case: str) -> str:
    """Return the name of a case without what executes it, which is the name of its program."""
    return case_name(base_model(case), *(word for word, match in _words(case) if not match or match["key"] == EXPORT))


def without_runtime(case: str) -> str:
    """Return the name of a case without versions and options: what it measures."""
    return case_name(base_model(case), *(word for word, match in _words(case) if not match))


def without_options(case: str) -> str:
    """Return the name of a case without run-time options, which is that of the default with the same versions."""
    stays = (word for word, match in _words(case) if not match or match["key"] in (EXPORT, RUNNER))
    return case_name(base_model(case), *stays)


def without_versions(case: str) -> str:
    """Return the name of a case without versions of ExecuTorch: what it measures with which run-time options."""
    stays = (word for word, match in _words(case) if not match or match["key"] not in (EXPORT, RUNNER))
    return case_name(base_model(case), *stays)


def without_version(case: str, version: str | None) -> str:
    """Return the name of a case without one version of ExecuTorch, of the export and of the runner."""
    left_out = {f"{EXPORT}={version}", f"{RUNNER}={version}"}
    return case_name(base_model(case), *(word for word, _ in _words(case) if word not in left_out))


def _words(case: str) -> Iterable[tuple[str, re.Match[str] | None]]:
    """Yield each word of a case's name, with the key and value of one that states a version or an option."""
    return ((word, _WORD.fullmatch(word)) for word in _split(case)[1].split(","))


def _split(case: str) -> tuple[str, str]:
    """Return the model and the words of a case; the name of a model that was measured elsewhere may contain an @."""
    model, at, words = case.rpartition("@")
    return (model, words) if at else (case, "")
