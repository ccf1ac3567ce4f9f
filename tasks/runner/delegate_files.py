"""The files that a runner with more delegates than XNNPACK has beside those of the plain one."""

import importlib.metadata
import importlib.util
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.platform import PLATFORM_FACTS, SIMULATED, Platform
from tasks.bundle.cell import XNNPACK
from tasks.bundle.delegates import DELEGATES
from tasks.runner.manifest import RunnerError, check_choice
from tasks.runner.toolchain import host_platform
from tasks.runner.wheels import download_wheel

GPU_KERNELS = ".metallib"
"""Suffix of a file of Metal kernels, which is not a library that a program is linked with."""
# What a library of the wheel loads from its own folder: MLX its Metal kernels.
_BESIDE_LIBRARY = {"mlx": ("mlx.metallib",)}
_PACKAGE, _LIBRARIES = "openvino", "openvino/libs/"
# Its wheels for aarch64 name newer versions of glibc from release to release: the platform is any that is on the index.
# What a device needs is read from the libraries themselves, as for all of a runner.
_GLIBC_MINORS = range(40, 16, -1)
# Of its libraries, what a program on the CPU loads: without the IR front end, importing a compiled model fails; TBB
# opens tbbbind and hwloc to find out about NUMA nodes and kinds of cores, and its allocator. Plug-ins of other devices
# and front ends that read other formats are a third of the package.
_RUNTIME = (
    "libopenvino.so.*", "libopenvino_c.so.*", "libopenvino_*_cpu_plugin.so", "libopenvino_ir_frontend.so.*",
    "libtbb.so.*", "libtbbbind_*.so.*", "libtbbmalloc.so.*", "libhwloc.so.*",
)  # fmt: skip
_REQUIRED = 4  # the first ones; of TBB, builds differ


@dataclass(frozen=True)
class DelegateFiles:
    """What the delegates of a runner bring."""

    names: tuple[str, ...]
    """The delegates by name, sorted; empty for the plain runner."""
    beside_library: tuple[str, ...]
    """Further files in the wheel's folder of libraries."""
    runtime: tuple[Path, ...]
    """Libraries of another package, which a delegate opens."""
    versions: dict[str, str]
    """The versions of these packages."""

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries of executorch, by what follows `libexecutorch`."""
        return tuple(f"_backend_{name}" for name in self.names)

    @property
    def paths(self) -> dict[str, Path]:
        """The CMake variables that name files of this machine."""
        library = next((path for path in self.runtime if path.name.startswith("libopenvino_c.")), None)
        return {"OPENVINO_C_LIBRARY": library} if library else {}

    @property
    def backends(self) -> list[str]:
        """The backends of the runner, by their ids; empty for the plain one, which states none."""
        return sorted([XNNPACK, *(DELEGATES[name].backend for name in self.names)]) if self.names else []


def find_delegate_files(platform: Platform, backends: Collection[str], cache: Path) -> DelegateFiles:
    """Find what the `backends` (ids, other than XNNPACK) bring; wheels of other platforms are downloaded into `cache`.

    Raises RunnerError or WheelError if something is missing.
    """
    if missing := why_no_library(platform, backends):
        raise RunnerError(missing)
    names = tuple(sorted(name for name, each in DELEGATES.items() if each.backend in backends))
    beside = tuple(file for name in names for file in _BESIDE_LIBRARY.get(name, ()))
    if _PACKAGE not in names:
        return DelegateFiles(names, beside, (), {})
    return DelegateFiles(names, beside, *_find_runtime(platform, cache))


def why_no_library(platform: str, backends: Collection[str]) -> str | None:
    """Return why no runner of a platform can be built with the backends; None if one can."""
    platform = host_platform() if platform == SIMULATED else platform
    by_backend = {each.backend: (name, each.platforms) for name, each in DELEGATES.items()}
    for backend in sorted(backends):
        name, platforms = by_backend.get(backend, (backend, ()))
        if platform not in platforms:
            missing = f"{name}: executorch's wheel has no library of {backend} for {platform}"
            if platforms:
                return f"{missing}; the farm's runners have it for {', '.join(platforms)}"
            return f"{missing}; register a runner with it: `etfarm devices runner register --backend {backend}`"
    return None


def delegate_backends(names: Sequence[str]) -> frozenset[str]:
    """Return the backends of delegates beside XNNPACK; raises RunnerError for one that the farm cannot build in."""
    choices = [name for name, each in DELEGATES.items() if each.backend != XNNPACK]
    return frozenset(DELEGATES[check_choice("delegate", name, choices)].backend for name in names)


def _find_runtime(platform: Platform, cache: Path) -> tuple[tuple[Path, ...], dict[str, str]]:
    """Return the libraries of openvino that a program on the CPU of `platform` needs, and its version.

    They are those of the installed package, which also exports; another platform gets its wheel of the same version.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise RunnerError(
            "openvino is not installed, whose libraries a runner with this delegate carries; install it with "
            "`pip install 'etfarm[openvino]'`"
        )
    version = importlib.metadata.version(_PACKAGE)
    folder = Path(next(iter(spec.submodule_search_locations))) / "libs"
    if platform != host_platform():
        tags = [f"manylinux_2_{minor}_{PLATFORM_FACTS[platform].processor}" for minor in _GLIBC_MINORS]
        folder = download_wheel((_PACKAGE, version), platform, tags, (_LIBRARIES,), cache) / _LIBRARIES
    libraries = {pattern: sorted(folder.glob(pattern)) for pattern in _RUNTIME}
    if missing := next((pattern for pattern in _RUNTIME[:_REQUIRED] if not libraries[pattern]), None):
        raise RunnerError(f"openvino {version} has no {missing} in {folder}; install it again, or another version")
    return tuple(sorted(path for paths in libraries.values() for path in paths)), {_PACKAGE: version}
