"""The platforms of devices and of the runners that are built for them."""

from typing import Literal, get_args

Platform = Literal["linux-x86_64", "linux-aarch64", "macos-arm64", "android-arm64"]
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
