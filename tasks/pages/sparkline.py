"""Sparklines: a figure over some nights as a small SVG line, with the onset of a change marked."""

from collections.abc import Sequence

_MARGIN = 2


def sparkline(values: Sequence[float | None], onset: int | None = None, size: tuple[int, int] = (90, 20)) -> str:
    """Return values, one for each night, as an SVG line of a size in pixels; empty for fewer than two values.

    A night without a value is a gap, and one between two gaps a dot. `onset` is the place of the first night of a
    change: a line marks it, and what follows is drawn in another style.
    """
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return ""
    width, height = size
    low, high = min(numbers), max(numbers)
    step = (width - 2 * _MARGIN) / (len(values) - 1)
    points: list[tuple[float, float] | None] = []
    for night, value in enumerate(values):
        if value is None:
            points.append(None)
            continue
        share = (value - low) / (high - low) if high > low else 0.5
        points.append((_MARGIN + step * night, height - _MARGIN - (height - 2 * _MARGIN) * share))
    # Hidden from screen readers: the text beside it states the newest value.
    drawn = f'<path d="{_path(points)}"/>'
    if onset is not None:
        x = _MARGIN + step * (onset - 0.5 if onset else 0)
        drawn += f'<path class="onset" d="M{x:.1f} 0V{height}"/><path class="after" d="{_path(points, onset)}"/>'
        if after := [point for point in points[onset:] if point]:
            drawn += f'<circle cx="{after[-1][0]:.1f}" cy="{after[-1][1]:.1f}" r="2"/>'
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg class="spark" {box} aria-hidden="true">{drawn}</svg>'


def _path(points: Sequence[tuple[float, float] | None], first: int = 0) -> str:
    path, command = "", "M"
    for at, point in enumerate(points[first:], first):
        is_alone = command == "M" and not any(points[at + 1 : at + 2])
        path += f"{command}{point[0]:.1f} {point[1]:.1f}{'h0' if is_alone else ''}" if point else ""
        command = "L" if point else "M"
    return path
