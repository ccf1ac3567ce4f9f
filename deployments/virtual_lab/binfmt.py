"""Programs for arm64 that this machine's kernel hands to qemu, as long as the lab is up."""

from pathlib import Path

from deployments.virtual_lab.journal import BINFMT, LabError, note, run_tool

_NAME = "etfarm-aarch64"
# An ELF file of 64 bits for arm64, a program or a shared object; the mask leaves out what may vary.
_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"


def register(qemu: Path) -> None:
    """Make arm64 programs run under `qemu`, in every root file system of this machine, unless that is so already.

    An entry of another emulator stays and is served again when the lab is down: the kernel asks the newest first.
    """
    if not (BINFMT / "register").exists():
        if not BINFMT.exists():
            raise LabError("this kernel has no binfmt_misc, and without it an x86_64 machine cannot be an arm64 phone")
        note("mount", str(BINFMT))
        run_tool("mount", "-t", "binfmt_misc", "etfarm-lab", BINFMT)
    if (BINFMT / _NAME).exists():
        return
    note("binfmt", _NAME)
    # F: the kernel opens qemu now, for in a phone's root file system its path leads nowhere.
    (BINFMT / "register").write_text(f":{_NAME}:M::{_MAGIC}:{_MASK}:{qemu}:F")
