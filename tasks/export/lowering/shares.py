"""What each backend took of a method: operators, and multiply-accumulates of one execution."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sql.schema import is_scalar_operator


def list_shares(
    delegated: "Mapping[str, Counter[str]]",
    portable: "Counter[str]",
    macs: Mapping[str | None, int] | None,
    stated_backends: Iterable[str],
) -> dict[str, Any]:
    """Return {delegates, portable_operators, portable_macs}; delegates are {backend, operators, macs}.

    `delegated` counts operators by backend, `macs` are those of `count_macs`. The `stated_backends` come first, also
    one that took nothing. Operators are those that export.json lists, quantize and dequantize among them; portable
    ones that only compute shapes and numbers do not count.
    """
    backends = dict.fromkeys([*stated_backends, *sorted(delegated)])
    return {
        "delegates": [
            {
                "backend": backend,
                "operators": sum(delegated.get(backend, {}).values()),
                "macs": None if macs is None else macs.get(backend, 0),
            }
            for backend in backends
        ],
        "portable_operators": sum(count for name, count in portable.items() if not is_scalar_operator(name)),
        "portable_macs": None if macs is None else macs.get(None, 0),
    }
