"""Where a farm and a lab leave their messages: two files in the store of the bundles."""

from dataclasses import dataclass

from devices.errors import InputError
from flows.labs.messages import Order, Report, order_text, parse_order, parse_report
from tasks.store.shelf import Shelf


@dataclass(frozen=True)
class Mailbox:
    """The messages about one lab's part of a sweep; methods raise BundleError if the storage does not answer."""

    shelf: Shelf
    name: str
    """Such as `nightly-2026-11-22/berlin-1f3a5b7c`."""

    @property
    def _folder(self) -> str:
        return f"labs/{self.name}"

    def write_order(self, order: Order) -> None:
        """Replace the farm's message."""
        self.shelf.write(f"{self._folder}/order.json", order_text(order))

    def order(self) -> Order:
        """Return the farm's message; raises InputError if there is none or it is of another version."""
        text = self.shelf.read(f"{self._folder}/order.json")
        if text is None:
            raise InputError(
                f"the order {self.name} is not in the store that this lab uses; "
                "give both sides the same --bundles (ETFARM_BUNDLES)"
            )
        return parse_order(text)

    def write_report(self, report: Report) -> None:
        """Replace the lab's message."""
        self.shelf.write(f"{self._folder}/report.json", report.model_dump_json().encode())

    def report(self) -> Report:
        """Return the lab's message, an empty one before the first; raises InputError if it is of another version."""
        text = self.shelf.read(f"{self._folder}/report.json")
        return Report() if text is None else parse_report(text)

    def remove(self) -> None:
        """Remove both messages."""
        self.shelf.remove(self._folder)
