"""Runner bundles that labs fetch: one archive for each, beside the bundles of sessions."""

from pathlib import Path

from tasks.runner.manifest import MANIFEST, Runner, RunnerError, read_runner
from tasks.store.archives import SUFFIX, ArchiveError, pack, unpack
from tasks.store.blob_store import BlobStore
from tasks.store.files import publish_folder, sha256_of, work_folder


def share_runner(shelf: BlobStore, runner: Runner) -> str:
    """Share a runner unless it is; return its name. Raises BundleError if the storage does not answer."""
    name = f"runners/{runner.platform}/{runner.folder.name}-{_manifest_hash(runner)}{SUFFIX}"
    if not shelf.has(name):
        with work_folder(runner.folder.parent) as aside:
            pack(runner.folder, aside / "archive")
            shelf.put(name, aside / "archive")
    return name


def fetch_runner(shelf: BlobStore, name: str, cache: Path) -> Runner:
    """Return a shared runner by its name; fetched once, into the folder `cache`.

    Raises RunnerError if it is missing or damaged, BundleError if the storage does not answer.
    """
    final = cache / Path(name).name.removesuffix(SUFFIX)
    if not final.is_dir():
        with work_folder(cache) as aside:
            if not shelf.get(name, aside / "archive"):
                raise RunnerError(f"the runner {name} is not shared any more; run the sweep again")
            with publish_folder(final) as made:
                try:
                    unpack(aside / "archive", made)
                except ArchiveError as error:
                    raise RunnerError(f"the shared runner {name} cannot be used: {error.cause}") from None
                _require_complete(read_runner(made), name)
    return read_runner(final)


def _manifest_hash(runner: Runner) -> str:
    """Return the part of a runner's name that says what is in it: its manifest has the hashes of all its files."""
    return sha256_of(runner.folder / MANIFEST)[:16]


def _require_complete(runner: Runner, name: str) -> None:
    if not name.endswith(f"-{_manifest_hash(runner)}{SUFFIX}"):
        raise RunnerError(f"the shared runner {name} is another one than its name says; run the sweep again")
    if wrong := [each for each, file in runner.files.items() if sha256_of(runner.folder / each) != file["sha256"]]:
        raise RunnerError(f"the shared runner {name} is damaged: {', '.join(wrong)}; run the sweep again")
