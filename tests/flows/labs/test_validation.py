"""Which facts of a lab's device are accepted."""

import pytest

from devices.errors import InputError
from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.labs.validation import validate_facts


def test_a_simulated_device_of_a_lab_has_the_platform_simulated_and_no_other() -> None:
    # given the entry of a simulated device, which states no platform
    spec = DeviceSpec(name="simulated-1", transport="simulated")
    # then its facts are taken over as a lab sends them, whatever the lab runs on
    validate_facts(spec, Facts(os="linux", platform="simulated"))
    # and a real platform is refused
    with pytest.raises(InputError, match="`platform` is linux-x86_64, but simulated in the inventory"):
        validate_facts(spec, Facts(os="linux", platform="linux-x86_64"))


def test_facts_that_contradict_each_other_are_refused_with_both() -> None:
    spec = DeviceSpec(name="host", transport="ssh", address="a")
    with pytest.raises(InputError, match="`platform` is linux-x86_64, but `sme2` is true"):
        validate_facts(spec, Facts(os="linux", platform="linux-x86_64", sme2=True))


@pytest.mark.parametrize(
    ("platform", "sentence"),
    [
        ("simulated", "`platform` is simulated, but `os` is linux"),
        ("linux-../../x", "`platform` is 'linux-../../x', which is not a platform"),
    ],
)
def test_a_platform_that_the_device_cannot_have_is_refused(platform: str, sentence: str) -> None:
    spec = DeviceSpec(name="phone", transport="adb", serial="s1")
    with pytest.raises(InputError, match=sentence):
        validate_facts(spec, Facts(os="linux", platform=platform))
