"""What was done to the farm, and how soon the next session was recorded after it."""

import json
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.survival.chaos.acts import Deed
from tests.survival.chaos.farm import ChaosFarm


@dataclass
class _Done:
    act: str
    deed: Deed
    at_s: float
    recovered_s: float | None = None


@dataclass
class History:
    """Acts, and the bundles of all nights as they appear."""

    farm: ChaosFarm
    done: list[_Done] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)
    """What happened besides, such as starts of the controller."""
    bundles: int = 0
    _seen: set[Path] = field(default_factory=set)
    _begin_s: float = field(default_factory=time.monotonic)

    def tell(self, text: str) -> None:
        """Print a line with the seconds since the start, the night and its bundles."""
        passed_s = time.monotonic() - self._begin_s
        print(f"{passed_s:7.1f} s  night {self.farm.night + 1:3}  {self.bundles:5} bundles  {text}", flush=True)

    def add(self, act: str, deed: Deed) -> None:
        self.done.append(_Done(act, deed, time.monotonic()))
        self.tell(f"{act} {deed.text}")

    def look(self) -> None:
        """Note the bundles that are new, and the acts after which they are the first of what the act concerns."""
        now_s, places = time.monotonic(), self.farm.places()
        for record in (self.farm.bundles / self.farm.sweep_id).glob("[!.]*/session.json"):
            if record in self._seen:
                continue
            self._seen.add(record)
            self.bundles += 1
            content = json.loads(record.read_bytes())
            if content["status"] == "failed":
                continue
            device = content["device"]["name"]
            for each in self.done:
                if each.recovered_s is None and {device, places[device]} & each.deed.concerns:
                    each.recovered_s = now_s - each.at_s

    def table(self) -> str:
        """Return a line for each act: how often, and after how many seconds the next session was recorded."""
        lines = [f"{'act':32} {'times':>5} {'next session after: median':>27} {'longest':>9} {'never':>6}"]
        for act, count in sorted(Counter(each.act for each in self.done).items()):
            after_s = [each.recovered_s for each in self.done if each.act == act and each.recovered_s is not None]
            median, longest = (f"{statistics.median(after_s):.1f} s", f"{max(after_s):.1f} s") if after_s else ("", "")
            lines.append(f"{act:32} {count:5} {median:>27} {longest:>9} {count - len(after_s):6}")
        return "\n".join([*lines, *(f"{name:32} {count:5}" for name, count in sorted(self.other.items()))])
