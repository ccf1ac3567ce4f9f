"""Runner bundles: the program that executes a model on a device, its libraries, and a manifest that describes it.

A bundle is a folder `<runners>/<platform>/<runner_sha256[:16]>/` of `executor_runner`, `lib/*` and `manifest.json`; the
name of a registered one ends with its modes and variants. Labs fetch bundles from object storage, one archive each.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from devices.errors import FarmError
from devices.platform import Platform
from devices.suggest import did_you_mean
from tasks.bundle.cell import XNNPACK, Mode, Use, Variant
from tasks.bundle.delegates import needed_backends, uses_xnnpack
from tasks.export.process.environments import installed_version
from tasks.store.archives import SUFFIX, ArchiveError, download_folder, upload_folder
from tasks.store.blob_store import BlobStore
from tasks.store.files import hash_file, publish_folder, write_complete

_log = logging.getLogger(__name__)
_Word = TypeVar("_Word", bound=str)

PROGRAM = "executor_runner"
MANIFEST = "manifest.json"
MANIFEST_VERSION = 1


class RunnerError(FarmError):
    """A runner cannot be built, registered or used; the text is one sentence with the cause and the remedy."""


@dataclass(frozen=True)
class Runner:
    """A runner bundle on this machine: its folder, and `manifest.json` without `manifest_version`."""

    folder: Path
    # built by the farm from the executorch wheel, brought by the user, or replaying what the farm's runner recorded
    kind: Literal["wheel", "registered", "simulated"]
    platform: Platform | Literal["simulated"]
    runner_sha256: str  # over the path and hash of every file
    launch: list[str]  # how to start it, relative to the bundle's folder
    variants: list[Variant]
    modes: list[Mode]
    files: dict[str, dict[str, Any]]  # relative path -> sha256, bytes
    versions: dict[str, str | None] = field(default_factory=dict)
    compiler: str | None = None
    flags: list[str] = field(default_factory=list)
    source_sha256: str | None = None
    build_key: str | None = None  # everything that the build depends on; equal keys need no second build
    provenance: str | None = None  # where a registered runner comes from
    needs: dict[str, str] = field(default_factory=dict)  # see min_versions.py
    stated_backends: list[str] = field(default_factory=list)
    """The delegates' backends that it was built or registered with, by their ids; empty in older manifests."""

    @property
    def supports_farm_flags(self) -> bool:
        """Whether it has --stats_path, --sme2 and --kernel_profile_path; a registered one has stock flags only."""
        return self.kind != "registered"

    @property
    def backends(self) -> frozenset[str] | None:
        """The delegates' backends that it has; None if unknown: a registered one may have any."""
        if self.stated_backends:
            return frozenset(self.stated_backends)
        return None if self.kind == "registered" else frozenset({XNNPACK})

    def command(self, folder: str) -> list[str]:
        """Return the start of the command line, for a bundle that is in `folder` (absolute) on a device."""
        return [part if part.startswith("-") else f"{folder}/{part}" for part in self.launch]

    def tree(self) -> dict[str, Path]:
        """Return what must be on a device: relative path -> local file."""
        return {name: self.folder / name for name in self.files}


def check_choice(kind: str, word: str, choices: Sequence[_Word]) -> _Word:
    """Return `word` if it is one of `choices`; raises RunnerError that lists them and suggests the nearest."""
    for each in choices:
        if each == word:
            return each
    raise RunnerError(f"unknown {kind} `{word}`: use one of {', '.join(choices)}{did_you_mean(word, choices)}")


def read_runner(folder: Path) -> Runner:
    """Read a runner bundle; raises RunnerError if it is damaged. Sizes of files are checked, not their hashes."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if manifest.pop("manifest_version") != MANIFEST_VERSION:
            raise RunnerError(f"{path}: manifest_version is not {MANIFEST_VERSION}; build or register the runner again")
        runner = Runner(folder=folder, **manifest)
        for name, file in runner.files.items():
            if (folder / name).stat().st_size != file["bytes"]:
                raise RunnerError(f"{folder / name} is not the file that its manifest describes; remove {folder}")
    except OSError as error:
        raise RunnerError(f"{folder} is not a complete runner bundle: {error.strerror} ({error.filename})") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunnerError(f"{path} is not a runner's manifest: {error}") from None
    return runner


def list_runners(runners_dir: Path, platform: str) -> list[Runner]:
    """Return the complete bundles of a platform, sorted by name; damaged bundles are logged and skipped."""
    runners = []
    for path in sorted((runners_dir / platform).glob(f"[!.]*/{MANIFEST}")):
        try:
            runners.append(read_runner(path.parent))
        except RunnerError as error:
            _log.warning("%s", error)
    return runners


def find_runner(runners_dir: Path, platform: str, use: Use) -> Runner | None:
    """Return the runner bundle for a use, None if there is none.

    A registered one comes before one built here, because the user registered it to be used; then the one that was built
    or requested last. The mode numerics takes a runner for timing. A runner of another version of executorch than the
    use states never fits. Without a stated version that is the installed one, and a registered runner fits unless it
    states its own; where executorch is not installed, every version fits.
    """
    fitting = [runner for runner in list_runners(runners_dir, platform) if fits_use(runner, use)]
    return max(fitting, key=lambda r: (r.kind == "registered", (r.folder / MANIFEST).stat().st_mtime_ns), default=None)


def fits_use(runner: Runner, use: Use) -> bool:
    """Return whether a runner fits a use, as `find_runner` describes."""
    mode = "timing" if use.mode == "numerics" else use.mode
    fits_session = use.variant in runner.variants and mode in runner.modes and _fits_version(runner, use.version)
    return fits_session and _fits_delegate(runner, use.delegate)


def _fits_delegate(runner: Runner, delegate: str | None) -> bool:
    """Return whether a runner has the backends that a delegate needs.

    A runner with more than XNNPACK is another program: it executes only what needs it, so a case of XNNPACK or of
    portable operators has the same runner whether or not other delegates are measured beside it.
    """
    needed, more = needed_backends(delegate), (runner.backends or frozenset()) - {XNNPACK}
    if needed is None:
        return runner.kind == "registered" and (bool(more) or runner.backends is None)
    if not needed:
        return not more
    lacks_xnnpack = uses_xnnpack(delegate) and XNNPACK not in (runner.backends or ())
    return needed <= more and not lacks_xnnpack


def _fits_version(runner: Runner, version: str | None) -> bool:
    own = (runner.versions.get("executorch") or "").partition("+")[0]
    if version is not None:
        return own == version
    if runner.kind == "registered":
        return not own
    return installed_version() in (None, own)


def find_earlier_runner(runners_dir: Path, platform: str, runner_sha256: str | None, variant: str) -> Runner:
    """Return an earlier runner for timing and numerics, by its hash and a variant; raises RunnerError if it is gone."""
    for runner in list_runners(runners_dir, platform):
        if runner.runner_sha256 == runner_sha256 and variant in runner.variants and "timing" in runner.modes:
            return runner
    raise RunnerError(f"its runner ({(runner_sha256 or 'unknown')[:8]}) is not in {runners_dir / platform} any more")


def publish_runner(content: Path, runners_dir: Path, described: Mapping[str, Any]) -> Runner:
    """Move the files in `content` into a bundle under `runners_dir` and return it.

    `described` are the fields of the manifest that do not follow from the files.
    The same bytes always get the same folder; the manifest published last remains.
    """
    files = {
        str(path.relative_to(content)): {"sha256": hash_file(path), "bytes": path.stat().st_size}
        for path in sorted(content.rglob("*"))
        if path.is_file()
    }
    lines = "".join(f"{name} {file['sha256']}\n" for name, file in files.items())
    sha256 = hashlib.sha256(lines.encode()).hexdigest()
    runner = Runner(folder=content, runner_sha256=sha256, files=files, **described)
    # A registered program has a folder for each use.
    uses = [*runner.modes, *runner.variants] if runner.kind == "registered" else []
    folder = runners_dir / runner.platform / "-".join([sha256[:16], *uses])
    manifest = {"manifest_version": MANIFEST_VERSION, **asdict(runner)}
    del manifest["folder"]
    text = json.dumps(manifest, indent=2).encode() + b"\n"
    with publish_folder(folder) as aside:
        for name in files:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (content / name).rename(aside / name)
        (aside / MANIFEST).write_bytes(text)
    if (folder / MANIFEST).read_bytes() != text:
        write_complete(folder / MANIFEST, text)
    return read_runner(folder)


def share_runner(shared_files: BlobStore, runner: Runner) -> str:
    """Upload a runner unless it is shared; return its name there. Raises BundleError if the storage does not answer."""
    name = f"runners/{runner.platform}/{runner.folder.name}{_archive_end(runner)}"
    if not shared_files.has(name):
        upload_folder(shared_files, name, runner.folder)
    return name


def fetch_runner(shared_files: BlobStore, name: str, cache: Path) -> Runner:
    """Return a shared runner, downloaded into `cache` once and checked; RunnerError, or BundleError of the storage."""
    final = cache / Path(name).name.removesuffix(SUFFIX)
    if final.is_dir():
        return read_runner(final)
    with publish_folder(final) as unpacked:
        try:
            if not download_folder(shared_files, name, unpacked):
                raise RunnerError(f"the runner {name} is not shared any more; run the sweep again")
        except ArchiveError as error:
            raise RunnerError(f"the shared runner {name} cannot be used: {error.cause}") from None
        runner = read_runner(unpacked)
        if not name.endswith(_archive_end(runner)):
            raise RunnerError(f"the shared runner {name} does not match its name; run the sweep again")
        hashes = {each: file["sha256"] for each, file in runner.files.items()}
        if wrong := [each for each, path in runner.tree().items() if hash_file(path) != hashes[each]]:
            raise RunnerError(f"the shared runner {name} is damaged: {', '.join(wrong)}; run the sweep again")
    return read_runner(final)


def _archive_end(runner: Runner) -> str:
    """Return the end of a shared runner's name: a hash of its manifest, which contains the hashes of all files."""
    return f"-{hash_file(runner.folder / MANIFEST)[:16]}{SUFFIX}"
