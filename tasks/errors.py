"""The base of the farm's errors, for the tasks."""

from devices.errors import FarmError, InputError

__all__ = ["FarmError", "InputError"]
