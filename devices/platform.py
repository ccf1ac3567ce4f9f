"""The platforms of devices and of the runners that are built for them: one table, a row for each.

To add one, add its name and its row here, and its branches in devices/runner/platform, which does not compile for
others.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Platform = Literal["linux-x86_64", "linux-aarch64", "macos-arm64", "android-arm64"]
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
# The platform of simulated devices, and the word that their names begin with.
SIMULATED: Final = "simulated"


@dataclass(frozen=True)
class PlatformFacts:
    system: Literal["linux", "macos", "android"]
    processor: Literal["x86_64", "aarch64"]
    wheel_tag: str
    """The tag of executorch's wheel on the package index."""
    built_as: Platform
    """The platform that its runner is compiled for: Android has no wheel, so its runner is Linux's."""

    @property
    def can_have_sme(self) -> bool:
        return self.processor == "aarch64"

    @property
    def is_elf(self) -> bool:
        """Whether its programs are ELF files; those of macOS are Mach-O."""
        return self.system != "macos"

    @property
    def library_suffix(self) -> str:
        return ".so" if self.is_elf else ".dylib"

    @property
    def carries_c_library(self) -> bool:
        """Whether its runner brings Linux's C library and loader, which start the program."""
        return self.system == "android"

    @property
    def counts_kernels(self) -> bool:
        """Whether the farm's runner can count the calls of kernels there."""
        return self.is_elf and self.processor == "aarch64"


_AARCH64_WHEEL = "manylinux_2_28_aarch64"
PLATFORM_FACTS: dict[Platform, PlatformFacts] = {
    "linux-x86_64": PlatformFacts("linux", "x86_64", "manylinux_2_28_x86_64", built_as="linux-x86_64"),
    "linux-aarch64": PlatformFacts("linux", "aarch64", _AARCH64_WHEEL, built_as="linux-aarch64"),
    "macos-arm64": PlatformFacts("macos", "aarch64", "macosx_14_0_arm64", built_as="macos-arm64"),
    "android-arm64": PlatformFacts("android", "aarch64", _AARCH64_WHEEL, built_as="linux-aarch64"),
}
WITHOUT_SME = frozenset(name for name, facts in PLATFORM_FACTS.items() if not facts.can_have_sme)
