"""Download and unpack Debian and Ubuntu packages with apt, without installing them.

apt gets a private folder, package database and architecture, so nothing on the machine changes and root is not needed;
mirror, proxies and credentials are those of the machine. apt checks the signature of InRelease against the
distribution's keyring, the index against InRelease, and every package's SHA-256 against the index.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class PackageError(Exception):
    """Packages could not be downloaded or unpacked; the text is one sentence."""


@dataclass(frozen=True)
class Archive:
    """A distribution's package archive, at the mirror that this machine uses."""

    mirror: str
    keyring: Path
    suites: tuple[str, ...]
    components: tuple[str, ...]
    qemu_suite: str  # where qemu-user is at least 10.1, the first that runs SME2


_DISTRIBUTIONS = {
    # Debian packages the real adbd since trixie; trixie's qemu-user is too old for SME2.
    "debian": (("trixie", "trixie-backports"), ("main",), "trixie-backports"),
    "ubuntu": (("resolute",), ("main", "universe"), "resolute"),
}


def machine_archive() -> Archive:
    """Return the archive in this machine's apt sources.

    Raises PackageError if apt is missing, or its sources contain neither a Debian nor an Ubuntu archive.
    """
    if not shutil.which("apt-get"):
        raise PackageError("the virtual lab needs Debian or Ubuntu: there is no apt-get on this machine")
    release = _os_release()
    family = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    name = next((word for word in family if word in _DISTRIBUTIONS), None)
    if name is None:
        raise PackageError(f"the virtual lab needs Debian or Ubuntu, not {family[0] or 'an unknown distribution'}")
    suites, components, qemu_suite = _DISTRIBUTIONS[name]
    mirror = _mirror_of(name, release.get("VERSION_CODENAME", ""))
    return Archive(mirror, _keyring_of(name), suites, components, qemu_suite)


def _os_release() -> dict[str, str]:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines) if value}


def _mirror_of(distribution: str, codename: str) -> str:
    """Return the address of the repository of the running release.

    Its Release file names the distribution; before the first `apt-get update` only its address does.
    """
    listing = _run(["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI) $(ORIGIN)", "Created-By: Packages"])
    targets = [line.split(maxsplit=2) for line in listing.splitlines()]
    by_origin = [uri for suite, uri, origin in targets if suite == codename and origin.lower() == distribution]
    by_address = [uri for _, uri, _ in targets if uri.rstrip("/").endswith(f"/{distribution}")]
    found = by_origin + by_address
    if not found:
        raise PackageError(f"apt's sources contain no {distribution} archive: add one to /etc/apt/sources.list")
    return found[0]


def _keyring_of(distribution: str) -> Path:
    folder = Path("/usr/share/keyrings")
    for ending in ("gpg", "pgp"):
        path = folder / f"{distribution}-archive-keyring.{ending}"
        if path.exists():
            return path
    raise PackageError(f"{folder} has no keyring of {distribution}: install {distribution}-archive-keyring")


class Apt:
    """apt-get with a private folder, package database and architecture."""

    def __init__(self, folder: Path, archive: Archive, architecture: str) -> None:
        self.folder = folder.resolve()
        self.archive = archive
        self.architecture = architecture
        self._updated = False

    def with_dependencies(self, packages: Sequence[str]) -> list[Path]:
        """Download `packages` and all that they depend on; returns their .deb files, checked by apt.

        Raises PackageError with apt's message.
        """
        self._update()
        wanted = ["install", "--assume-yes", "--download-only", *packages]
        # apt does not list packages that are already in its archives folder, so it gets an empty one.
        listing = self._apt_get([*wanted, "--print-uris", "-o", f"Dir::Cache::archives={self.folder}/none"])
        names = re.findall(r"^'[^']+' (\S+\.deb) \d+ ", listing, flags=re.MULTILINE)
        self._apt_get(wanted)
        return [self.folder / "cache/archives" / name for name in names]

    def alone(self, package: str, suite: str) -> Path:
        """Download `package` of `suite` without its dependencies; returns its .deb file, checked by apt."""
        self._update()
        wanted = ["download", f"{package}/{suite}"]
        found = re.search(r"^'[^']+' (\S+\.deb) \d+ ", self._apt_get([*wanted, "--print-uris"]), flags=re.MULTILINE)
        if found is None:
            raise PackageError(f"apt found no file for {package} in {suite}; check that the mirror has this suite")
        self._apt_get(wanted)
        return self.folder / found[1]

    def _update(self) -> None:
        """Download the indexes once; a failed download is an error even if older indexes exist."""
        if self._updated:
            return
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        # An empty database, so that all dependencies are downloaded, also those that this machine has.
        (self.folder / "status").write_text("")
        (self.folder / "sources.list").write_text(self._sources())
        (self.folder / "apt.conf").write_text(self._configuration())
        self._apt_get(["update", "--error-on=any"])
        self._updated = True

    def _sources(self) -> str:
        archive = self.archive
        components = " ".join(archive.components)
        return "".join(
            f"deb [signed-by={archive.keyring}] {archive.mirror} {suite} {components}\n" for suite in archive.suites
        )

    def _configuration(self) -> str:
        """The machine's settings for downloads; all others point into this folder."""
        fetching = [
            line
            for line in _run(["apt-config", "dump"]).splitlines()
            if line.startswith("Acquire::") and not line.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
        ]
        here, empty = self.folder, self.folder / "none"
        empty.mkdir(exist_ok=True)
        private = [
            f'Dir::State "{here}/state";',
            f'Dir::State::status "{here}/status";',
            f'Dir::Cache "{here}/cache";',
            f'Dir::Etc::sourcelist "{here}/sources.list";',
            *(f'Dir::Etc::{part} "{empty}";' for part in ("sourceparts", "preferencesparts", "parts")),
            *(f'Dir::Etc::{part} "{here}/none.conf";' for part in ("main", "preferences")),
            f'APT::Architecture "{self.architecture}";',
            f'APT::Architectures {{ "{self.architecture}"; }};',
            'APT::Install-Recommends "false";',
            'APT::Sandbox::User "";',  # the unprivileged _apt may not be able to enter this folder
            'Acquire::Languages "none";',
            'Acquire::AllowInsecureRepositories "false";',
            'Acquire::AllowWeakRepositories "false";',
            'Binary::apt-get::APT::Keep-Downloaded-Packages "true";',
        ]
        return "\n".join([*fetching, *private, ""])

    def _apt_get(self, arguments: list[str]) -> str:
        environment = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C.UTF-8"}
        return _run(["apt-get", "--quiet=2", *arguments], cwd=self.folder, env=environment)


def unpack(debs: Iterable[Path], into: Path) -> None:
    """Unpack the files of `debs` into the folder `into`, as they would be installed below `/`."""
    for deb in debs:
        _run(["dpkg-deb", "--extract", str(deb), str(into)])


def unpack_one(deb: Path, member: str, into: Path) -> None:
    """Unpack only the file `member` (such as usr/bin/tool) of `deb`, as the executable file `into`."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            entry = next((entry for entry in archive if entry.name.removeprefix("./") == member), None)
            source = archive.extractfile(entry) if entry is not None else None
            if source is None:
                raise PackageError(f"{deb.name} does not contain {member}")
            with into.open("wb") as target:
                shutil.copyfileobj(source, target)
        process.kill()  # the rest of the package is not needed
    into.chmod(0o755)


def _run(argv: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith(("E:", "dpkg-deb:"))]
        cause = " ".join(errors) or f"exit code {done.returncode}"
        raise PackageError(f"{' '.join(argv[:3])} failed: {cause}")
    return done.stdout
