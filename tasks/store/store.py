"""Where bundles are kept: a local folder, or object storage (S3 and everything else that fsspec reaches)."""

from tasks.store.base import BundleStore
from tasks.store.local import LocalStore
from tasks.store.remote import ObjectStore
from tasks.store.workspace import Workspace

__all__ = ["BundleStore", "LocalStore", "ObjectStore", "open_store"]


def open_store(bundles: str | None, workspace: Workspace) -> BundleStore:
    """Return the store at a folder or URL; without one, the folder of the workspace."""
    return Workspace(workspace.root, None, bundles).store
