"""The errors of the farm. Each text is one sentence that a user can act on: `what: cause; what to do`.

`FarmError` is the base of every error that devices, tasks and flows report to the user. The warehouse does not import
other packages and has its own base in sql/errors.py.
"""

from collections.abc import Sequence


class FarmError(Exception):
    """The farm cannot continue; the text is one sentence with the cause and what to do."""

    @property
    def reason(self) -> str:
        """The text for records and reports, which are read on other machines: without the path of a log."""
        return str(self)


class InputError(FarmError):
    """A file, a name or a value from the user is wrong; the text states it, what is wrong and what to write instead."""

    @property
    def sentences(self) -> Sequence[str]:
        return [str(self)]


class Mistakes(InputError):
    """Several mistakes."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self._sentences = sentences

    @property
    def sentences(self) -> Sequence[str]:
        return self._sentences


class DeviceError(FarmError):
    """A device failed: `device` is its name, `cause` what happened, `remedy` what the user can do."""

    def __init__(self, device: str, cause: str, remedy: str = "") -> None:
        super().__init__(f"{device}: {cause}; {remedy}" if remedy else f"{device}: {cause}")
        self.device = device
        self.cause = cause
        self.remedy = remedy


class DeviceLost(DeviceError):
    """The device stopped answering or was restarted; what ran on it may have ended."""


class DeviceRefused(DeviceError):
    """The device answers but refuses: a key, a permission, an authorisation, an unknown host."""


class DeviceBusy(DeviceError):
    """Another process holds the lease of the device."""


class LeaseLost(DeviceError):
    """Another process took over the lease: stop using the device."""


class DeadlineExceeded(DeviceError):
    """A command ran longer than its wall-clock deadline and its process group was killed."""


class TransferFailed(DeviceError):
    """A file transfer failed; no partial file is left."""


class NoSpaceOnDevice(TransferFailed):
    """The disk of the device is full."""


class FileChanged(TransferFailed):
    """A local file is not the one that was exported, built or registered; the device did not keep it."""


class FileRefused(TransferFailed):
    """The file to fetch is larger than its limit, or is not a regular file."""


class OutputTooLong(DeviceError):
    """A command printed more than its limit and its process group was killed."""


class FileMissing(TransferFailed):
    """The file to fetch is not on the device."""
