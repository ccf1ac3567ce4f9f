"""Whether a program's file fits a platform, and whether all that it needs is beside it."""

from pathlib import Path

from tasks.runner.bundle import PROGRAM, RunnerError
from tasks.runner.elf import AARCH64, X86_64, Elf, parse_elf
from tasks.runner.elf import MAGIC as ELF_MAGIC
from tasks.runner.macho import ARM64, FAT_MAGIC, Macho, fat_cpus, parse_macho
from tasks.runner.macho import MAGIC as MACHO_MAGIC

_ELF_PLATFORMS = {X86_64: ("linux-x86_64",), AARCH64: ("linux-aarch64", "android-arm64")}
# What a Linux machine brings itself, and what every Mac does.
_ELF_SYSTEM = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libpthread.so", "libdl.so", "ld-linux-")
_MACHO_SYSTEM = ("/usr/lib/", "/System/Library/")


def platforms_of(program: Path) -> tuple[str, ...]:
    """Return the platforms that a program can run on; none if it is no program of a known one."""
    data = program.read_bytes()
    try:
        if data.startswith(FAT_MAGIC):
            return ("macos-arm64",) if ARM64 in fat_cpus(data[:4096]) else ()
        if data.startswith(MACHO_MAGIC):
            return ("macos-arm64",) if parse_macho(data).cpu == ARM64 else ()
        return _elf_platforms(parse_elf(data)) if data.startswith(ELF_MAGIC) else ()
    except ValueError:
        return ()


def _elf_platforms(elf: Elf) -> tuple[str, ...]:
    """Tell Android from Linux by the loader that the program asks for; one that asks for none runs on both."""
    platforms = _ELF_PLATFORMS.get(elf.machine, ())
    if elf.interpreter is None:
        return platforms
    android = elf.interpreter.startswith("/system/bin/linker")
    return tuple(name for name in platforms if name.startswith("android") == android)


def missing_libraries(bundle: Path) -> set[str]:
    """Return the names of shared libraries (ELF) that files in the bundle need and that are not in its `lib`."""
    present = {path.name for path in (bundle / "lib").iterdir()}
    return {name for path in _files(bundle) for name in parse_elf(path.read_bytes()).needed if name not in present}


def check_bundle(bundle: Path, platform: str) -> None:
    """Check a bundle that cannot be started here, from its files; raises RunnerError naming the file and its fault.

    Every file is for the platform's processor, looks for its libraries in the bundle, and finds there what it needs.
    """
    faults = _macho_faults(bundle) if platform == "macos-arm64" else _elf_faults(bundle, platform)
    for name, fault in faults.items():
        raise RunnerError(f"the runner that was built for {platform} will not start: {name}: {fault}")


def _elf_faults(bundle: Path, platform: str) -> dict[str, str]:
    """Return file name -> fault. A bundle for Android carries every library, and all in the versions it asks for."""
    files = {path.name: parse_elf(path.read_bytes()) for path in _files(bundle)}
    carries_all = platform == "android-arm64"
    faults = {}
    for name, elf in files.items():
        if elf.machine != (X86_64 if platform == "linux-x86_64" else AARCH64):
            faults[name] = "it is for another processor"
        elif name == PROGRAM and elf.runpaths != ["$ORIGIN/lib"]:
            faults[name] = f"it looks for its libraries in {elf.runpaths}"
        for needed in elf.needed:
            if needed not in files and (carries_all or not needed.startswith(_ELF_SYSTEM)):
                faults[name] = f"it needs {needed}, which is not in the bundle"
        for needed, versions in elf.versions_needed.items():
            if needed in files and (lacking := versions - files[needed].versions_offered):
                faults[name] = f"it needs {', '.join(sorted(lacking))} of {needed}, which is older"
    return faults


def _macho_faults(bundle: Path) -> dict[str, str]:
    """Return file name -> fault. A file without a signature is killed by the system when it starts."""
    files = {path.name: parse_macho(path.read_bytes()) for path in _files(bundle)}
    faults = {}
    for name, macho in files.items():
        if macho.cpu != ARM64:
            faults[name] = "it is for another processor"
        elif not macho.signed:
            faults[name] = "it is not signed"
        elif name == PROGRAM and macho.rpaths != ["@executable_path/lib"]:
            faults[name] = f"it looks for its libraries in {macho.rpaths}"
        elif fault := _macho_link_fault(macho, files):
            faults[name] = fault
    return faults


def _macho_link_fault(macho: Macho, files: dict[str, Macho]) -> str | None:
    for library in macho.libraries:
        if library.removeprefix("@rpath/") not in files and not library.startswith(_MACHO_SYSTEM):
            return f"it needs {library}, which is not in the bundle"
    for symbol, origin in macho.imports.items():
        source = files.get((origin or "").removeprefix("@rpath/"))
        if source and symbol not in source.exports:
            return f"it needs {symbol} of {origin}, which has none"
    return None


def _files(bundle: Path) -> list[Path]:
    return [bundle / PROGRAM, *sorted((bundle / "lib").iterdir())]
