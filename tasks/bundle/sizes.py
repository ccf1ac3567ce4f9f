"""Sizes as text."""

_KILO, _MEGA = 1e3, 1e6


def size_text(size_bytes: float) -> str:
    """Return a size with at most four digits: `48.4 MB`, below a megabyte `26.92 kB`, below a kilobyte `812 B`."""
    for unit, name in ((_MEGA, "MB"), (_KILO, "kB")):
        if abs(size_bytes) >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes:.4g} B"
