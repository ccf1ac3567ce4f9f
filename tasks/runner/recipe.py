"""What a build of the runner depends on: sources, executorch wheel, compiler and settings."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from devices.platform import PLATFORM_FACTS, Platform
from tasks.runner.manifest import PROGRAM
from tasks.runner.toolchain import Toolchain, find_cmake, host_platform, toolchain_for
from tasks.runner.wheel import Wheel, installed_wheel, wheel_for
from tasks.store.files import sha256_of

SOURCES = Path(__file__).parents[2] / "devices" / "runner"
# The libraries that a runner loads. The farm does not measure the wheel's others (OpenVINO, QNN, Core ML, MLX).
LIBRARIES = ("", "_kernels_optimized", "_kernels_quantized", "_backend_xnnpack", "_threadpool", "_etdump")
LOADER = "ld-linux-aarch64.so.1"


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the bytes of a runner bundle."""

    platform: Platform
    sources: Path  # folder of the C++ files and CMakeLists.txt
    wheel: Wheel
    toolchain: Toolchain
    cmake: str

    @property
    def carries_c_library(self) -> bool:
        """Android has another C library, so the bundle carries Linux's and its loader, which starts the program."""
        return PLATFORM_FACTS[self.platform].carries_c_library

    @property
    def launch(self) -> list[str]:
        """How to start the program, relative to the bundle's folder."""
        return [f"lib/{LOADER}", "--library-path", "lib", PROGRAM] if self.carries_c_library else [PROGRAM]

    @property
    def flags(self) -> list[str]:
        """Settings for CMake in addition to those in CMakeLists.txt."""
        settings = {"CMAKE_BUILD_TYPE": "Release"} | self.toolchain.settings
        return [f"-D{name}={value}" for name, value in settings.items()]

    @property
    def source_sha256(self) -> str:
        """One hash over every source file of the runner."""
        files = sorted(path for path in self.sources.rglob("*") if path.is_file())
        lines = [f"{path.relative_to(self.sources)} {sha256_of(path)}\n" for path in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of executorch and of the runner's source."""
        found = re.search(r"project\(executor_runner VERSION ([\d.]+)", (self.sources / "CMakeLists.txt").read_text())
        return {"executorch": self.wheel.version, "runner": found[1] if found else None}

    @property
    def build_key(self) -> str:
        """64 hexadecimal digits, equal for equal builds."""
        parts = [self.platform, self.source_sha256, self.wheel.version, self.wheel.sha256]
        parts += [self.toolchain.version, *self.flags]
        if self.carries_c_library:
            parts.append(sha256_of(self.toolchain.library("libc.so.6")))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def recipe_for(platform: Platform, runners_dir: Path) -> Recipe:
    """Find what a build for `platform` needs; raises RunnerError or WheelError if a part is missing.

    The wheel of another platform is downloaded on first use, into `cache` beside `runners_dir`.
    """
    cache = runners_dir.absolute().parent / "cache"
    toolchain = toolchain_for(platform, cache)
    if platform == host_platform():
        wheel = installed_wheel()
    else:
        wheel = wheel_for(PLATFORM_FACTS[platform].built_as, cache / "wheels")
    return Recipe(platform, SOURCES, wheel, toolchain, find_cmake())
