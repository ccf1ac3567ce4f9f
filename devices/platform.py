"""The platforms of devices and of the runners that are built for them: one table, a row for each.

To add one, add its name and its row here, and its branch in devices/runner (which refuses to compile for others).
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Platform = Literal["linux-x86_64", "linux-aarch64", "macos-arm64", "android-arm64"]
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
# The platform of simulated devices, and the word that their names begin with.
SIMULATED: Final = "simulated"


@dataclass(frozen=True)
class PlatformFacts:
    """What is the same for all devices of a platform."""

    system: Literal["linux", "macos", "android"]
    processor: Literal["x86_64", "aarch64"]
    can_have_sme: bool
    wheel_tag: str
    """The tag of executorch's wheel on the package index."""
    library_suffix: str
    built_as: Platform
    """The platform that its runner is compiled for: Android has no wheel, so its runner is Linux's."""
    carries_c_library: bool
    """Whether its runner brings Linux's C library and loader, which start the program."""
    shows_selected_kernels: bool
    """Whether the farm's runner can tell there which kernels XNNPACK selected."""

    @property
    def is_elf(self) -> bool:
        """Whether its programs are ELF files; those of macOS are Mach-O."""
        return self.system != "macos"


_AARCH64_WHEEL = "manylinux_2_28_aarch64"
PLATFORM_FACTS: dict[Platform, PlatformFacts] = {
    "linux-x86_64": PlatformFacts(
        system="linux",
        processor="x86_64",
        can_have_sme=False,
        wheel_tag="manylinux_2_28_x86_64",
        library_suffix=".so",
        built_as="linux-x86_64",
        carries_c_library=False,
        shows_selected_kernels=False,
    ),
    "linux-aarch64": PlatformFacts(
        system="linux",
        processor="aarch64",
        can_have_sme=True,
        wheel_tag=_AARCH64_WHEEL,
        library_suffix=".so",
        built_as="linux-aarch64",
        carries_c_library=False,
        shows_selected_kernels=True,
    ),
    "macos-arm64": PlatformFacts(
        system="macos",
        processor="aarch64",
        can_have_sme=True,
        wheel_tag="macosx_14_0_arm64",
        library_suffix=".dylib",
        built_as="macos-arm64",
        carries_c_library=False,
        shows_selected_kernels=False,
    ),
    "android-arm64": PlatformFacts(
        system="android",
        processor="aarch64",
        can_have_sme=True,
        wheel_tag=_AARCH64_WHEEL,
        library_suffix=".so",
        built_as="linux-aarch64",
        carries_c_library=True,
        shows_selected_kernels=True,
    ),
}
WITHOUT_SME = frozenset(name for name, facts in PLATFORM_FACTS.items() if not facts.can_have_sme)
