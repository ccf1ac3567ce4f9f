"""What can go wrong with a device, in one hierarchy; every text is one sentence: the device, the cause, the way on."""


class DeviceError(Exception):
    """Something about one device; `device` is its name, `cause` what happened, `way_on` what a person can do."""

    def __init__(self, device: str, cause: str, way_on: str = "") -> None:
        super().__init__(f"{device}: {cause}; {way_on}" if way_on else f"{device}: {cause}")
        self.device = device
        self.cause = cause
        self.way_on = way_on


class DeviceLost(DeviceError):
    """The device stopped answering, or came back as another boot: what ran on it may have ended."""


class DeviceRefused(DeviceError):
    """The device is there and says no: a key, a permission, an authorisation, an unknown host."""


class DeviceBusy(DeviceError):
    """Somebody else holds the device's lease."""


class LeaseLost(DeviceError):
    """The lease that was held is another's now: stop using the device."""


class DeadlineExceeded(DeviceError):
    """A command ran longer than its wall-clock deadline and its process group was killed."""


class TransferFailed(DeviceError):
    """A file did not arrive whole; nothing of it was left behind."""


class NoSpaceOnDevice(TransferFailed):
    """The device's disk is full."""


class FileMissing(TransferFailed):
    """The file to fetch is not on the device."""
