"""Whether a runner bundle that cannot be started here brings the libraries that its files need."""

from pathlib import Path

from devices.platform import PLATFORM_FACTS, PLATFORMS
from tasks.runner.binary import read_binary
from tasks.runner.manifest import PROGRAM, RunnerError, known_word

# Libraries that every Linux machine has, and folders of libraries that every Mac has.
_OF_SYSTEM = (
    "libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libpthread.so", "libdl.so", "ld-linux-",
    "/usr/lib/", "/System/Library/",
)  # fmt: skip


def missing_libraries(bundle: Path) -> set[str]:
    """Return the shared libraries that files in the bundle need and that are not in its `lib`.

    Raises RunnerError if a file is damaged.
    """
    libraries = list((bundle / "lib").iterdir())
    needed = {name for path in (bundle / PROGRAM, *libraries) for name in read_binary(path).needed}
    return needed - {path.name for path in libraries}


def check_bundle(bundle: Path, platform: str) -> None:
    """Raise RunnerError if a library is missing that no device of `platform` has."""
    facts = PLATFORM_FACTS[known_word("platform", platform, PLATFORMS)]
    of_device = () if facts.carries_c_library else _OF_SYSTEM
    for name in sorted(missing_libraries(bundle)):
        if not name.startswith(of_device):
            raise RunnerError(
                f"the runner that was built for {platform} will not start: it needs {name}, which is not in the bundle"
            )
