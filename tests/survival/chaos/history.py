"""What was done to the farm, printed as it happens and counted."""

import time
from collections import Counter
from dataclasses import dataclass, field

from tests.survival.chaos.farm import ChaosFarm


@dataclass
class History:
    """Acts on the farm, and what happened besides, such as starts of the controller."""

    farm: ChaosFarm
    counts: Counter[str] = field(default_factory=Counter)
    _begin_s: float = field(default_factory=time.monotonic)

    def tell(self, text: str) -> None:
        """Print a line with the seconds since the start, the night and its bundles."""
        passed_s, bundles = time.monotonic() - self._begin_s, self.farm.bundles.glob("*/[!.]*/session.json")
        print(f"{passed_s:7.1f} s  night {self.farm.night + 1:3}  {len(list(bundles)):5} bundles  {text}", flush=True)

    def add(self, act: str, text: str) -> None:
        self.counts[act] += 1
        self.tell(f"{act} {text}")

    def table(self) -> str:
        return "\n".join(f"{name:40} {count:5}" for name, count in sorted(self.counts.items()))
