"""`etfarm prune` and what farms and labs share beside the bundles."""

import os

from tasks.store.store import LocalStore
from tests.fixtures.command import Etfarm, Kept


def test_archives_that_no_lab_used_for_long_are_removed_and_the_others_stay(kept: Kept, etfarm: Etfarm) -> None:
    # given what labs shared long ago: an export, a runner that is used again, and a message
    shelf = LocalStore(kept.bundles).shelf
    old, used, message = "exports/1f.tar.zst", "runners/linux-x86_64/r.tar.zst", "labs/smoke/order"
    for name in (old, used, message):
        shelf.write(name, b"content")
        os.utime(shelf.root / name, (1e9, 1e9))
    assert shelf.has(used)
    # when the farm is pruned
    code, printed = etfarm("prune", "--thin-after", 9999, "--pack-after", 9999, "--yes")
    # then only the export is removed
    assert (code, printed) == (0, f"removed {shelf.root / old}\n")
    assert [(shelf.root / name).is_file() for name in (old, used, message)] == [False, True, True]
