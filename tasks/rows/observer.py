"""What ExecuTorch's own runner of language models prints about a text: a line `PyTorchObserver {...}` in its log."""

from pathlib import Path
from typing import Any

from devices.errors import FarmError
from devices.untrusted import UntrustedFileError, parse_json, read_untrusted
from tasks.bundle.names import MOST_LOG_BYTES

_MARK = b"PyTorchObserver {"
# As print_report of ExecuTorch's extension/llm/runner/stats.h computes them; times are milliseconds of one clock.
_SPANS = {
    "load": ("model_load_start_ms", "model_load_end_ms"),
    "prompt": ("inference_start_ms", "prompt_eval_end_ms"),
    "first_token": ("inference_start_ms", "first_token_ms"),
    "text": ("prompt_eval_end_ms", "inference_end_ms"),
}


class ObserverError(FarmError):
    """A log has no report that can be used; the text is one sentence."""


def observer_log(path: Path) -> bytes | None:
    """Return the content of a file that is a log with such a line, None of any other."""
    if path.suffix == ".etdump":
        return None
    try:
        content = read_untrusted(path, MOST_LOG_BYTES)
    except UntrustedFileError:  # reported when it is read as an ETDump
        return None
    return content if _MARK in content else None


def observed(content: bytes, shown: str) -> dict[str, Any]:
    """Return the columns of `session` that the report of a log states; raises ObserverError."""
    lines = [line[line.index(_MARK) :] for line in content.splitlines() if _MARK in line]
    if len(lines) != 1:
        raise ObserverError(f"{shown}: has {len(lines)} PyTorchObserver lines; load a log for each text, with one")
    try:
        stated = parse_json(lines[0][len(_MARK) - 1 :])
        tokens = {name: int(stated[f"{name}_tokens"]) for name in ("prompt", "generated")}
        ms = {name: float(stated[end]) - float(stated[start]) for name, (start, end) in _SPANS.items()}
    except (ValueError, TypeError, KeyError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise ObserverError(f"{shown}: the PyTorchObserver line is incomplete ({cause}); copy it complete") from None
    if min(tokens.values()) < 1 or min(ms.values()) < 0:
        raise ObserverError(f"{shown}: the PyTorchObserver line states no tokens, or times that run backwards")
    return {
        "load_ns": round(ms["load"] * 1e6),
        "reported_prompt_tokens": tokens["prompt"],
        "reported_prompt_ms": ms["prompt"],
        "reported_first_token_ms": ms["first_token"],
        "reported_tokens": tokens["generated"],
        "reported_text_ms": ms["text"],
    }
