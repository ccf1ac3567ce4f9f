"""Facts and conditions from what Linux, macOS and Android print."""

import pytest

from devices.errors import DeviceError
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts, parse_facts, parse_sections, read_facts
from tests.fixtures.printed import (
    ANDROID_CONDITIONS,
    ANDROID_FACTS,
    LINUX_CONDITIONS,
    LINUX_FACTS,
    MACOS_CONDITIONS,
    MACOS_FACTS,
    Printing,
    conditions,
)

FACTS = {
    ANDROID_FACTS: Facts(
        os="android", os_version="15", model="Pixel 8 Pro", soc="Tensor G3", cores=9, memory_bytes=11825920 * 1024,
        arch="aarch64", platform="android-arm64", sme=True, sme2=True, hostname="localhost", serial="3A211JEHN00001",
        build="google/husky/husky:15/AP3A/1:user/release-keys",
    ),
    MACOS_FACTS: Facts(
        os="macos", os_version="15.5", model="Mac16,10", soc="Apple M4", cores=10, memory_bytes=17179869184,
        arch="arm64", platform="macos-arm64", sme=True, sme2=True, sme_units=1, hostname="mini.local", build="24F74",
    ),
    LINUX_FACTS: Facts(
        os="linux", os_version="Debian GNU/Linux 12 (bookworm)", model="Raspberry Pi 5 Model B Rev 1.0", cores=4,
        memory_bytes=8245776 * 1024, arch="aarch64", platform="linux-aarch64", glibc="2.36", glibcxx="3.4.30",
        sme=False, sme2=False, hostname="pi", build="6.6.31+rpt",
    ),
}  # fmt: skip
CONDITIONS = {
    ANDROID_CONDITIONS: Conditions(
        temperature_c=36.25, thermal_status=1, battery_percent=92, charging=True, governor="performance,schedutil",
        frequency_mhz=2914.0, load_1m=5.31, free_memory_bytes=5234560 * 1024, free_disk_bytes=60922576 * 1024,
        die_c=62.0, swap_used_bytes=1048576 * 1024,
    ),
    MACOS_CONDITIONS: Conditions(
        thermal_status=0, battery_percent=85, charging=False, load_1m=1.88, free_memory_bytes=33000 * 16384,
        free_disk_bytes=300000000 * 1024, swap_used_bytes=1095499776, background_cpu_percent=8.3,
    ),
    LINUX_CONDITIONS: Conditions(
        temperature_c=71.0, battery_percent=77, charging=True, governor="ondemand", frequency_mhz=2400.0,
        load_1m=0.41, free_memory_bytes=7000000 * 1024, free_disk_bytes=89000000 * 1024, die_c=48.312,
        swap_used_bytes=0, background_cpu_percent=25.0, calibration_ns=151234567,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cores", "of_cluster", "units"),
    [
        ("10", "5", 2),
        ("10", "4", 3),
        ("4", "4", 1),
        ("10", "0", None),
        ("-4", "2", None),
        ("x", "5", None),
        ("9" * 30, "5", None),
    ],
)
def test_units_of_sme_are_the_clusters_of_fast_cores(cores: str, of_cluster: str, units: int | None) -> None:
    sysctl = f"hw.perflevel0.physicalcpu: {cores}\nhw.perflevel0.cpusperl2: {of_cluster}"
    printed = {"system": "macos", "arch": "arm64", "sysctl": sysctl, "sme": "1"}
    assert parse_facts(printed, None).sme_units == units
    # then a Mac without SME has none, nor do programs that run in a launcher for another platform
    assert parse_facts(printed | {"sme": "0"}, None).sme_units is None
    assert parse_facts(printed, "linux-aarch64").sme_units is None


@pytest.mark.parametrize(("printed", "facts"), FACTS.items(), ids=["android", "macos", "linux"])
def test_what_each_system_prints_becomes_facts(printed: str, facts: Facts) -> None:
    assert parse_facts(parse_sections(printed), None) == facts


@pytest.mark.parametrize(("printed", "expected"), CONDITIONS.items(), ids=["android", "macos", "linux"])
def test_what_each_system_prints_becomes_conditions(printed: str, expected: Conditions) -> None:
    result = conditions(**parse_sections(printed))
    assert result.model_copy(update={"taken_at": None}) == expected


def test_facts_of_sme2_and_libraries_are_not_those_of_another_generation_or_platform() -> None:
    older = parse_sections(MACOS_FACTS.replace("@sme2\n1", "@sme2\n"))
    assert parse_facts(older, None).sme2 is False
    facts = parse_facts(parse_sections(MACOS_FACTS), "android-arm64")
    assert (facts.platform, facts.sme2, facts.os) == ("android-arm64", None, "macos")
    facts = parse_facts(parse_sections(LINUX_FACTS), "linux-x86_64")
    assert (facts.platform, facts.sme2, facts.glibc, facts.glibcxx) == ("linux-x86_64", False, None, None)


def test_a_phone_without_a_skin_sensor_has_its_batterys_temperature_and_a_mac_that_slows_down_is_throttled() -> None:
    assert conditions(**parse_sections(ANDROID_CONDITIONS) | {"thermal": "Thermal Status: 0\n"}).temperature_c == 28.4
    for speed, status in ((100, 0), (62, 1)):
        printed = f"CPU_Scheduler_Limit \t= 100\nCPU_Speed_Limit \t= {speed}\n"
        assert conditions(system="macos", thermal=printed).thermal_status == status


@pytest.mark.fault
@pytest.mark.parametrize(
    ("printed", "shown"),
    [(b"@system\nwindows\n", "'windows'"), (b"\xff\xfe" * 500, "''"), (b"@system\n" + b"x" * 10_000, "xxx...'")],
)
def test_a_device_with_an_unknown_system_is_named_in_one_sentence(printed: bytes, shown: str) -> None:
    with pytest.raises(DeviceError, match=r"^phone: its system reads '.*; the farm measures on linux, ") as refused:
        read_facts(Printing(printed))
    assert shown in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.fault
def test_facts_that_cannot_be_stored_are_unknown() -> None:
    # given a device whose host name is `@system`, and whose numbers are too large or no digits of ASCII
    lines = {
        "system": "linux",
        "hostname": "@system",
        "arch": "aarch64/../..",
        "cores": "\N{SUPERSCRIPT TWO}",
        "memory": f"MemTotal: {'9' * 20} kB",
        "kernel": "k" * 100_000,
        "product": "\N{SUPERSCRIPT TWO}",
        "glibc": "glibc 2." + "9" * 5000,
        "glibcxx": "GLIBCXX_3.\nGLIBCXX_..\nGLIBCXX_3.4.\N{SUPERSCRIPT TWO}",
    }
    printed = "".join(f"@{key}\n{value}\n" for key, value in lines.items())
    # when its facts are read
    facts = read_facts(Printing(printed.encode()))
    # then the system is still known, and nothing is too long or too large
    assert (facts.os, facts.hostname, facts.model) == ("linux", "@system", "\N{SUPERSCRIPT TWO}")
    assert (facts.cores, facts.memory_bytes, facts.arch, facts.platform) == (None, None, None, None)
    assert facts.build == "k" * 300
    assert (facts.glibc, facts.glibcxx) == (None, None)
