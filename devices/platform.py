"""The platforms of devices and of the runners that are built for them."""

from typing import Final, Literal, get_args

Platform = Literal["linux-x86_64", "linux-aarch64", "macos-arm64", "android-arm64"]
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
# The platform of simulated devices, and the word that their names begin with.
SIMULATED: Final = "simulated"
