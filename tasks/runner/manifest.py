"""Runner bundles: the program that executes a model on a device, its libraries, and a manifest that describes it.

A bundle is a folder `<runners>/<platform>/<runner_sha256[:16]>/` of `executor_runner`, `lib/*` and `manifest.json`;
the name of a registered one ends with its modes and variants.
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
from tasks.bundle.cell import XNNPACK, Mode, Variant
from tasks.store.files import publish_folder, sha256_of, write_complete

_log = logging.getLogger(__name__)
_Word = TypeVar("_Word", bound=str)

PROGRAM = "executor_runner"
MANIFEST = "manifest.json"
MANIFEST_VERSION = 1


class RunnerError(FarmError):
    """A runner cannot be built, registered or used; the text is one sentence with the cause and what would help."""


@dataclass(frozen=True)
class Manifest:
    """The description of a runner bundle, as written in `manifest.json` (which also has `manifest_version`)."""

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
    needs: dict[str, str] | None = None  # see floor.py; None of an older farm: unknown


@dataclass(frozen=True, kw_only=True)
class Runner(Manifest):
    """A runner bundle on this machine."""

    folder: Path

    @property
    def supports_farm_flags(self) -> bool:
        """Whether it takes --stats_path, --sme2 and --kernel_profile_path; a registered one takes stock flags only."""
        return self.kind != "registered"

    @property
    def backends(self) -> frozenset[str] | None:
        """The backends of delegates that it has; None if they are unknown: a registered one may have any."""
        return None if self.kind == "registered" else frozenset({XNNPACK})

    def command(self, folder: str) -> list[str]:
        """Return the start of the command line, for a bundle that is in `folder` (absolute) on a device."""
        return [part if part.startswith("-") else f"{folder}/{part}" for part in self.launch]

    def tree(self) -> dict[str, Path]:
        """Return what must be on a device: relative path -> local file."""
        return {name: self.folder / name for name in self.files}


def known_word(kind: str, word: str, known: Sequence[_Word]) -> _Word:
    """Return `word` if it is one of `known`; raises RunnerError that lists them and suggests the nearest."""
    for each in known:
        if each == word:
            return each
    raise RunnerError(f"unknown {kind} `{word}`: use one of {', '.join(known)}{did_you_mean(word, known)}")


def read_runner(folder: Path) -> Runner:
    """Read a runner bundle and check every file's size against its manifest; raises RunnerError in one sentence."""
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


def find_runner(runners_dir: Path, platform: str, variant: str, mode: str) -> Runner | None:
    """Return the runner bundle for a session of `variant` and `mode`, None if there is none.

    A registered one comes before one built here, because the user registered it to be used; otherwise the one that
    was built or requested last. For numerics, any runner for timing will do.
    """
    mode = "timing" if mode == "numerics" else mode
    fitting = [r for r in runners_of(runners_dir, platform) if variant in r.variants and mode in r.modes]
    return max(fitting, key=lambda r: (r.kind == "registered", (r.folder / MANIFEST).stat().st_mtime_ns), default=None)


def kept_runner(runners_dir: Path, platform: str, runner_sha256: str | None, variant: str, mode: str) -> Runner:
    """Return an earlier runner by its hash, for a variant and a mode; raises RunnerError if it is not kept."""
    for runner in runners_of(runners_dir, platform):
        if runner.runner_sha256 == runner_sha256 and variant in runner.variants and mode in runner.modes:
            return runner
    raise RunnerError(f"its runner ({(runner_sha256 or 'unknown')[:8]}) is not in {runners_dir / platform} any more")


def publish_runner(made: Path, runners_dir: Path, described: Mapping[str, Any]) -> Runner:
    """Move the files in `made` into a bundle under `runners_dir`, with the manifest's other fields in `described`.

    The same bytes always get the same folder; the manifest published last remains.
    """
    files = {
        str(path.relative_to(made)): {"sha256": sha256_of(path), "bytes": path.stat().st_size}
        for path in sorted(made.rglob("*"))
        if path.is_file()
    }
    lines = "".join(f"{name} {file['sha256']}\n" for name, file in files.items())
    manifest = Manifest(runner_sha256=hashlib.sha256(lines.encode()).hexdigest(), files=files, **described)
    text = json.dumps({"manifest_version": MANIFEST_VERSION, **asdict(manifest)}, indent=2).encode() + b"\n"
    folder = runners_dir / manifest.platform / _folder_name(manifest)
    with publish_folder(folder) as aside:
        for name in files:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).rename(aside / name)
        (aside / MANIFEST).write_bytes(text)
    if (folder / MANIFEST).read_bytes() != text:
        write_complete(folder / MANIFEST, text)
    return read_runner(folder)


def _folder_name(manifest: Manifest) -> str:
    """Return a name that differs for a program built here, and for each use that it is registered for."""
    name = manifest.runner_sha256[:16]
    return "-".join([name, *manifest.modes, *manifest.variants]) if manifest.kind == "registered" else name


def runners_of(runners_dir: Path, platform: str) -> list[Runner]:
    """Return the complete bundles of a platform; damaged bundles are logged and skipped."""
    found = []
    for path in sorted((runners_dir / platform).glob(f"[!.]*/{MANIFEST}")):
        try:
            found.append(read_runner(path.parent))
        except RunnerError as error:
            _log.warning("%s", error)
    return found
