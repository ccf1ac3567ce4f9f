"""The kinds of events, which their names tell."""

from enum import IntEnum


class EventKind(IntEnum):
    """The kind of an event, derived from its name."""

    METHOD = 0
    """`Method::execute`: one execution, end to end."""
    DELEGATE_CALL = 1
    """A call into a delegate; contains the events that the delegate reports."""
    OPERATOR_CALL = 2
    """A call of a portable operator; contains its event."""
    DELEGATED = 3
    """An operator that a delegate ran and reported."""
    PORTABLE = 4
    """A portable operator, `native_call_*`."""
    OTHER = 5
    """Anything else, such as `Method::init` or a move."""


_KIND_OF_NAME = {
    "Method::execute": EventKind.METHOD,
    "DELEGATE_CALL": EventKind.DELEGATE_CALL,
    "OPERATOR_CALL": EventKind.OPERATOR_CALL,
}


def kind_of(name: str) -> EventKind:
    """Return the kind of an event that has this name."""
    if name.startswith("native_call_"):
        return EventKind.PORTABLE
    return _KIND_OF_NAME.get(name, EventKind.OTHER)
