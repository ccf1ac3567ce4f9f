"""How many sessions of a cell a statement about it needs: planned, measured and judged by the same numbers."""

LEAST_SESSIONS = 5
"""Sessions that each side of a comparison needs for an interval."""
ALERT_SESSIONS = 8
"""A night with fewer sessions needs a comparison the same night for an alarm."""
