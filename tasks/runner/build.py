"""Runners for every platform of the farm: built here from the executorch wheel, or registered.

What a runner bundle is, is said in `tasks.runner_bundle`.
"""

from pathlib import Path

from tasks.runner.bundle import (
    MANIFEST,
    PLATFORMS,
    Runner,
    RunnerError,
    find_runner,
    publish_runner,
    read_runner,
    runners_of,
)
from tasks.runner.compile import build_into, recipe_for
from tasks.runner.register import register_runner
from tasks.runner.toolchain import host_platform

__all__ = [
    "PLATFORMS",
    "Runner",
    "RunnerError",
    "build_runner",
    "find_runner",
    "host_platform",
    "read_runner",
    "register_runner",
]


def build_runner(platform: str, runners_dir: Path) -> Runner:
    """Return the runner bundle of `platform`, built unless one of the same sources, wheel and compiler is there.

    Takes seconds and may run twice at once. Raises RunnerError in one sentence if a compiler, the wheel or a tool is
    missing, or the program does not build; nothing half-built stays behind.
    """
    if platform not in PLATFORMS:
        raise RunnerError(f"platform is one of {', '.join(PLATFORMS)}, not '{platform}'")
    recipe = recipe_for(platform, runners_dir)
    for runner in runners_of(runners_dir, platform):
        if runner.build_key == recipe.build_key:
            (runner.folder / MANIFEST).touch()  # find_runner takes the last one
            return runner
    base = build_runner("linux-aarch64", runners_dir) if recipe.brings_c_library else None
    try:
        with build_into(runners_dir / platform, recipe, base) as made:
            described = {
                "kind": "wheel",
                "platform": platform,
                "launch": recipe.launch,
                "variants": ["sme2_off"] if platform == "linux-x86_64" else ["sme2_on", "sme2_off"],
                "modes": ["timing", "profile"],
                "versions": recipe.versions,
                "compiler": recipe.toolchain.version,
                "flags": recipe.flags,
                "source_sha256": recipe.source_sha256,
                "build_key": recipe.build_key,
                "provenance": None,
            }
            return publish_runner(made, runners_dir, described)
    except OSError as error:
        where = error.filename2 or error.filename or runners_dir
        raise RunnerError(f"the runner for {platform} cannot be built: {error.strerror or error} ({where})") from None
