"""Whether the files of a runner bundle that cannot be started here fit its platform and each other."""

from pathlib import Path

from devices.platform import PLATFORM_FACTS, PLATFORMS, PlatformFacts
from tasks.prepare.runner.binary import Elf, Macho, read_elf, read_macho
from tasks.prepare.runner.bundle import PROGRAM, RunnerError, known_word

# Libraries that every Linux machine has, and folders of libraries that every Mac has.
_LINUX_LIBRARIES = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libpthread.so", "libdl.so", "ld-linux-")
_MACOS_FOLDERS = ("/usr/lib/", "/System/Library/")


def missing_libraries(bundle: Path) -> set[str]:
    """Return the names of shared libraries (ELF) that files in the bundle need and that are not in its `lib`."""
    present = {path.name for path in (bundle / "lib").iterdir()}
    return {name for path in _binaries(bundle) for name in read_elf(path).needed if name not in present}


def check_bundle(bundle: Path, platform: str) -> None:
    """Check that the bundle's files are for `platform`, and find in the bundle the libraries that they need.

    Raises RunnerError that names the file and its fault.
    """
    facts = PLATFORM_FACTS[known_word("platform", platform, PLATFORMS)]
    faults = _elf_faults(bundle, facts) if facts.is_elf else _macho_faults(bundle)
    for name, fault in faults.items():
        raise RunnerError(f"the runner that was built for {platform} will not start: {name}: {fault}")


def _elf_faults(bundle: Path, facts: PlatformFacts) -> dict[str, str]:
    """Return file name -> fault. A bundle for Android carries every library, in the versions that its files need."""
    files = {path.name: read_elf(path) for path in _binaries(bundle)}
    faults = {}
    for name, elf in files.items():
        if fault := _elf_link_fault(elf, files, facts.carries_c_library):
            faults[name] = fault
        elif elf.processor != facts.processor:
            faults[name] = "it is for another processor"
        elif name == PROGRAM and elf.runpaths != ["$ORIGIN/lib"]:
            faults[name] = f"it looks for its libraries in {elf.runpaths}"
    return faults


def _elf_link_fault(elf: Elf, files: dict[str, Elf], carries_all: bool) -> str | None:
    for needed in elf.needed:
        if needed not in files and (carries_all or not needed.startswith(_LINUX_LIBRARIES)):
            return f"it needs {needed}, which is not in the bundle"
    for needed, versions in elf.versions_needed.items():
        if needed in files and (absent := versions - files[needed].versions_offered):
            return f"it needs {', '.join(sorted(absent))} of {needed}, which is older"
    return None


def _macho_faults(bundle: Path) -> dict[str, str]:
    """Return file name -> fault. macOS kills a program without a signature when it starts."""
    files = {path.name: read_macho(path) for path in _binaries(bundle)}
    faults = {}
    for name, macho in files.items():
        if not macho.is_arm64:
            faults[name] = "it is for another processor"
        elif not macho.is_signed:
            faults[name] = "it is not signed"
        elif name == PROGRAM and macho.rpaths != ["@executable_path/lib"]:
            faults[name] = f"it looks for its libraries in {macho.rpaths}"
        elif fault := _macho_link_fault(macho, files):
            faults[name] = fault
    return faults


def _macho_link_fault(macho: Macho, files: dict[str, Macho]) -> str | None:
    for library in macho.libraries:
        if library.removeprefix("@rpath/") not in files and not library.startswith(_MACOS_FOLDERS):
            return f"it needs {library}, which is not in the bundle"
    for symbol, origin in macho.imports.items():
        source = files.get((origin or "").removeprefix("@rpath/"))
        if source and symbol not in source.exports:
            return f"it needs {symbol} of {origin}, which does not define it"
    return None


def _binaries(bundle: Path) -> list[Path]:
    return [bundle / PROGRAM, *sorted((bundle / "lib").iterdir())]
