"""The delegates that a sweep states: what a program is lowered to, by which names, and which backends it then calls.

A stated delegate is a word in the name of a case, as in `mobilenet_v2@delegate=openvino`: it belongs to the cell and to
the series. The default, XNNPACK, adds nothing, so series from before there was a choice go on. `openvino+xnnpack` is a
list by priority: OpenVINO first takes what it can, then XNNPACK. `portable` is none at all.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from devices.platform import PLATFORMS, Platform
from devices.suggest import did_you_mean
from tasks.bundle.cell import XNNPACK

DEFAULT_DELEGATE, PORTABLE = "xnnpack", "portable"
_AND = "+"
_USER_PARTITIONER = re.compile(r"[A-Za-z]\w*(\.[A-Za-z_]\w*)*(?<!\.py):[A-Za-z_]\w*", re.ASCII)
_IN_FILE = re.compile(r"(?:\./)?(\w+)\.py:(\w+)", re.ASCII)


class Delegate(NamedTuple):
    backend: str
    """Its id in programs."""
    platforms: tuple[Platform, ...]
    """Those whose wheel of executorch has its library."""
    title: str
    """Its name in sentences."""
    has_threads: bool = True
    """Whether it takes a number of threads."""
    proven_on: tuple[Platform, ...] = ()
    """The platforms where a session with it succeeded on hardware for the farm's authors; add one once one did."""


DELEGATES: dict[str, Delegate] = {
    DEFAULT_DELEGATE: Delegate(XNNPACK, PLATFORMS, "XNNPACK", proven_on=PLATFORMS),
    "openvino": Delegate("OpenvinoBackend", ("linux-x86_64", "linux-aarch64"), "OpenVINO", proven_on=("linux-x86_64",)),
    "coreml": Delegate("CoreMLBackend", ("macos-arm64",), "Core ML", has_threads=False),
    "mlx": Delegate("MLXBackend", ("macos-arm64",), "MLX", has_threads=False),
}


def delegate_word(written: Any) -> str:
    """Return the word of what a sweep file states: a name, `package.module:function`, or a list by priority.

    Raises ValueError with a sentence for anything else.
    """
    names = written if isinstance(written, list) else str(written).split(_AND)
    for name in names:
        _check_name(name, is_alone=len(names) == 1)
    if not names or len(set(names)) < len(names):
        raise ValueError("a list of delegates has at least one, and each once, by priority: [openvino, xnnpack]")
    return _AND.join(names)


def _check_name(name: Any, *, is_alone: bool) -> None:
    """Raise ValueError unless `name` may stand in the word of a delegate, alone or in a list."""
    choices = [*DELEGATES, PORTABLE]
    if not isinstance(name, str) or not (name in choices or _USER_PARTITIONER.fullmatch(name)):
        if in_file := _IN_FILE.fullmatch(str(name)):
            raise ValueError(f"`{name}`: a partitioner is named by its module; use `{in_file[1]}:{in_file[2]}`")
        raise ValueError(
            f"unknown delegate `{name}`; use one of {', '.join(choices)}, your own partitioner as "
            "package.module:function, or a list by priority, [openvino, xnnpack] in a file and openvino+xnnpack on the "
            f"command line{did_you_mean(str(name), choices)}"
        )
    if name == PORTABLE and not is_alone:
        raise ValueError(f"`{PORTABLE}` stands alone: operators that no delegate takes are portable in any case")


def delegate_names(word: str | None) -> tuple[str, ...]:
    """Return the delegates of a word by priority, none for `portable`; None is the default, XNNPACK."""
    return () if word == PORTABLE else tuple((word or DEFAULT_DELEGATE).split(_AND))


def backend_title(backend: str) -> str:
    """Return the name of a backend in sentences; its id if the farm has no name for it."""
    return next((each.title for each in DELEGATES.values() if each.backend == backend), backend)


def delegate_title(word: str) -> str:
    """Return the name of a stated delegate in sentences: `OpenVINO + XNNPACK`, `portable`, or your partitioner's."""
    return f" {_AND} ".join(DELEGATES[name].title if name in DELEGATES else name for name in word.split(_AND))


def is_users_partitioner(name: str) -> bool:
    return ":" in name


def uses_xnnpack(word: str | None) -> bool:
    """Return whether XNNPACK may execute a part of the program; a partitioner of the user's may name it, too."""
    return any(name == DEFAULT_DELEGATE or is_users_partitioner(name) for name in delegate_names(word))


def uses_threads(word: str | None) -> bool:
    """Return whether the number of threads may change the time; portable operators are executed by them, too."""
    names = delegate_names(word)
    return not names or any(is_users_partitioner(name) or DELEGATES[name].has_threads for name in names)


def user_partitioners(word: str | None) -> list[str]:
    """Return the functions of a word that return your own partitioners."""
    return [name for name in delegate_names(word) if is_users_partitioner(name)]


def unproven_notes(names: Iterable[str], platform: str | None = None) -> list[str]:
    """Return a sentence for each of the delegates `names` that no session of the farm's authors ever executed.

    With a platform also for each that they executed elsewhere alone.
    """
    proofs = [(name, DELEGATES[name].proven_on) for name in names if name in DELEGATES]
    on = platform if platform in PLATFORMS else None
    notes = [f"{name}: never run on hardware" for name, proven_on in proofs if not proven_on]
    elsewhere = [name for name, proven_on in proofs if on and proven_on and on not in proven_on]
    return notes + [f"{name}: never run on hardware of {on}" for name in elsewhere]


def needed_backends(word: str | None) -> frozenset[str] | None:
    """Return the backends other than XNNPACK that a runner needs; None if a partitioner of the user's decides."""
    names = delegate_names(word)
    if any(map(is_users_partitioner, names)):
        return None
    return frozenset(DELEGATES[name].backend for name in names) - {XNNPACK}


def stated_backends(word: str | None) -> frozenset[str] | None:
    """Return the only backends that a program may call; None without a word, or with a name that is not the farm's."""
    names = delegate_names(word)
    if word is None or not DELEGATES.keys() >= set(names):
        return None
    return frozenset(DELEGATES[name].backend for name in names)


def word_of_backends(backends: Iterable[str]) -> str | None:
    """Return the word that names these backends, XNNPACK last; None if the farm has no name for one of them."""
    names = {each.backend: name for name, each in DELEGATES.items()}
    every = sorted(set(backends), key=lambda each: (each == XNNPACK, each))
    return (_AND.join(names[each] for each in every) or PORTABLE) if names.keys() >= set(every) else None


def case_backends(word: str | None) -> frozenset[str] | None:
    """Return all backends that may execute a part of a case; None if a partitioner of the user's decides."""
    needed = needed_backends(word)
    return needed if needed is None or not uses_xnnpack(word) else needed | {XNNPACK}


# The word of a text, or of a list by priority.
StatedDelegate = Annotated[str, BeforeValidator(delegate_word, json_schema_input_type=str | list[str])]
