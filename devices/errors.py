"""The errors of the farm: each text is one sentence that a user can act on, `what: cause; what to do`.

`FarmError` is the base of every error that the devices, the tasks and the flows report to the user. The warehouse,
which imports no other room, has its own base in sql/errors.py.
"""


class FarmError(Exception):
    """The farm cannot continue; the text is one sentence with the cause and what to do."""


class InputError(FarmError):
    """A file, a name or a value from the user is wrong; the text names it, what is wrong and what is right."""


class DeviceError(FarmError):
    """A device failed; `device` is its name, `cause` what happened, `way_on` what the user can do."""

    def __init__(self, device: str, cause: str, way_on: str = "") -> None:
        super().__init__(f"{device}: {cause}; {way_on}" if way_on else f"{device}: {cause}")
        self.device = device
        self.cause = cause
        self.way_on = way_on


class DeviceLost(DeviceError):
    """The device stopped answering, or came back as another boot: what ran on it may have ended."""


class DeviceRefused(DeviceError):
    """The device answers and refuses: a key, a permission, an authorisation, an unknown host."""


class DeviceBusy(DeviceError):
    """Another process holds the lease of the device."""


class LeaseLost(DeviceError):
    """The lease that was held is another's now: stop using the device."""


class DeadlineExceeded(DeviceError):
    """A command ran longer than its wall-clock deadline and its process group was killed."""


class TransferFailed(DeviceError):
    """A file did not arrive complete; nothing of it was left behind."""


class NoSpaceOnDevice(TransferFailed):
    """The disk of the device is full."""


class FileMissing(TransferFailed):
    """The file to fetch is not on the device."""
