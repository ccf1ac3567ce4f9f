"""Where bundles are kept: a local folder, or object storage (S3 and everything else that fsspec reaches)."""

import os
from pathlib import Path

from tasks.store.base import BundleStore
from tasks.store.local import LocalStore
from tasks.store.remote import ObjectStore
from tasks.store.var import Var

__all__ = ["BundleStore", "LocalStore", "ObjectStore", "open_store", "stated_store"]


def open_store(bundles: str | None, var: Var) -> BundleStore:
    """Return the store at a folder or URL; without one, the folder of the var folder.

    Raises InputError if the URL is not supported or contains credentials.
    """
    if bundles is None or "://" not in bundles:
        return LocalStore(Path(bundles).absolute() if bundles else var.bundles, var.bundle_cache)
    return ObjectStore(bundles, var.bundle_cache)


def stated_store(bundles: str | None, var: Var) -> BundleStore:
    """Return the store that a deployment states, or that of ETFARM_BUNDLES: a worker has no option `--bundles`."""
    return open_store(bundles or os.environ.get("ETFARM_BUNDLES") or None, var)
