"""Makes this machine's kernel start arm64 programs with qemu, as long as the lab is up."""

from pathlib import Path

from tests.lab.journal import BINFMT, LabError, note, run_tool

_NAME = "etfarm-aarch64"
# A 64-bit ELF file for arm64, a program or a shared object; the mask excludes bytes that vary.
_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"


def register(qemu: Path) -> None:
    """Make arm64 programs run under `qemu` in every root file system of this machine, unless they already do.

    An entry of another emulator stays, and is used again when the lab is down: the newest entry comes first.
    """
    if not (BINFMT / "register").exists():
        if not BINFMT.exists():
            raise LabError("the kernel has no binfmt_misc, which the arm64 phone needs: run `modprobe binfmt_misc`")
        note("mount", str(BINFMT))
        run_tool("mount", "-t", "binfmt_misc", "etfarm-lab", BINFMT)
    if (BINFMT / _NAME).exists():
        return
    note("binfmt", _NAME)
    # F: the kernel opens qemu now; inside a phone's root file system its path does not exist.
    (BINFMT / "register").write_text(f":{_NAME}:M::{_MAGIC}:{_MASK}:{qemu}:F")
