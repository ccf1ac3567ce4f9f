"""What a sweep states of ExecuTorch: delegate, the version that exports, the one that executes, run-time options.

They stand in the name of a case, as in `mobilenet_v2@export=1.4.1` and `llama@tg64,runner=1.5.0,load=mmap`, and so
belong to its cells and its series. The farm's own version and the runtime's defaults add nothing to a name: series
survive an upgrade of the farm. The farm gives no model a name with `@`, `=` or a comma.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

EXPORT, RUNNER, DELEGATE = "export", "runner", "delegate"
_WORD = re.compile(r"(?P<key>[a-z][a-z0-9_]*)=(?P<value>[A-Za-z0-9][A-Za-z0-9_.+:-]*)")


@dataclass(frozen=True)
class Runtime:
    """The versions and options that a case states; what it does not state is the farm's own, or a default."""

    export: str | None = None
    """Version of ExecuTorch that exports the program."""
    runner: str | None = None
    """Version of ExecuTorch that the runner is built from."""
    options: tuple[tuple[str, str], ...] = ()
    """Name and value of each run-time option, sorted."""
    delegate: str | None = None
    """What it lowers the program to, as in bundle/delegates.py; None for XNNPACK."""

    @property
    def of_program(self) -> str:
        """The words of how the program is made, such as `delegate=openvino,export=1.4.1`; empty for the default."""
        return _join_words((DELEGATE, self.delegate), (EXPORT, self.export))

    @property
    def of_run(self) -> str:
        """The words of what executes the program, such as `runner=1.5.0,load=mmap`; empty for the default."""
        return _join_words((RUNNER, self.runner), *self.options)

    @property
    def of_versions(self) -> str:
        """All words but that of the delegate, such as `export=1.4.1,load=mmap`; empty for the default."""
        return _join_words((EXPORT, self.export), (RUNNER, self.runner), *self.options)


def case_name(model: str, *words: str) -> str:
    """Return the name of a case, `model@word,word`; empty words are left out."""
    text = ",".join(filter(None, words))
    return f"{model}{',' if '@' in model else '@'}{text}" if text else model


def base_model(case: str) -> str:
    """Return the name of the model that a case belongs to."""
    return _split(case)[0]


def parse_runtime(case: str) -> Runtime:
    """Return the versions and options in the name of a case."""
    values = {key: word.removeprefix(f"{key}=") for word, key in _words(case) if key}
    options = tuple(sorted((key, value) for key, value in values.items() if key not in (DELEGATE, EXPORT, RUNNER)))
    return Runtime(values.get(EXPORT), values.get(RUNNER), options, values.get(DELEGATE))


def program_name(case: str) -> str:
    """Return the name of a case without what executes it, which is the name of its program."""
    return _with_words(case, DELEGATE, EXPORT)


def without_runtime(case: str) -> str:
    """Return the name of a case without delegate, versions and options: what it measures."""
    return _with_words(case)


def without_case(case: str) -> str:
    """Return the name of a model for all its cases, with the delegate, versions and options that they have.

    The macro `_without_case` is the same for SQL.
    """
    return case_name(base_model(case), *(word for word, key in _words(case) if key))


def only_delegate(case: str) -> str:
    """Return the name of a case without versions and options: what it measures by which delegate."""
    return _with_words(case, DELEGATE)


def without_options(case: str) -> str:
    """Return the name of a case without run-time options: that of the default with the same delegate and versions."""
    return _with_words(case, DELEGATE, EXPORT, RUNNER)


def without_versions(case: str) -> str:
    """Return the name of a case without versions of ExecuTorch: what it measures by which delegate and options."""
    return case_name(base_model(case), *(word for word, key in _words(case) if key not in (EXPORT, RUNNER)))


def without_delegate(case: str) -> str:
    """Return the name of a case without its delegate, which is that of XNNPACK with the same versions and options."""
    return case_name(base_model(case), *(word for word, key in _words(case) if key != DELEGATE))


def without_version(case: str, version: str | None) -> str:
    """Return the name of a case without one version of ExecuTorch, of the export and of the runner."""
    left_out = {f"{EXPORT}={version}", f"{RUNNER}={version}"}
    return case_name(base_model(case), *(word for word, _ in _words(case) if word not in left_out))


def _join_words(*words: tuple[str, str | None]) -> str:
    return ",".join(f"{key}={value}" for key, value in words if value)


def _with_words(case: str, *keys: str) -> str:
    """Return the name of a case with those of its words that state one of `keys`, and those that state nothing."""
    return case_name(base_model(case), *(word for word, key in _words(case) if key is None or key in keys))


def _words(case: str) -> Iterable[tuple[str, str | None]]:
    """Yield each word of a case's name, with the key of one that states a delegate, a version or an option."""
    for word in _split(case)[1].split(","):
        match = _WORD.fullmatch(word)
        yield word, match["key"] if match else None


def _split(case: str) -> tuple[str, str]:
    """Return the model and the words of a case; the name of a model that was measured elsewhere may contain an @."""
    model, at, words = case.rpartition("@")
    return (model, words) if at else (case, "")
