"""Build runner bundles from the sources in devices/runner and the executorch wheel."""

import contextlib
import json
import logging
import os
import shlex
import shutil
import subprocess
from collections.abc import Collection, Iterator
from importlib.resources import files
from pathlib import Path

from devices.errors import FarmError
from devices.local import clean_environment
from devices.platform import PLATFORM_FACTS, PLATFORMS, SIMULATED
from tasks.bundle.cell import VARIANTS, Use
from tasks.bundle.delegates import needed_backends
from tasks.export.process.environments import installed_version
from tasks.runner.binary import read_binary
from tasks.runner.build_inputs import CMAKE_PACKAGE, DELEGATE_SOURCES, LOADER, BuildInputs, find_build_inputs
from tasks.runner.delegate_files import GPU_KERNELS
from tasks.runner.manifest import (
    MANIFEST,
    PROGRAM,
    Runner,
    RunnerError,
    check_choice,
    find_runner,
    list_runners,
    publish_runner,
)
from tasks.runner.min_versions import min_versions
from tasks.runner.toolchain import host_platform, plain_folder, run_steps
from tasks.store.files import work_folder

_log = logging.getLogger(__name__)
_BUILD_S = 600
# Libraries that every Linux machine has, and folders of libraries that every Mac has.
_SYSTEM_LIBRARIES = (
    "libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libpthread.so", "libdl.so", "ld-linux-",
    "/usr/lib/", "/System/Library/",
)  # fmt: skip


def build_runner(
    platform: str, runners_dir: Path, version: str | None = None, backends: Collection[str] = ()
) -> Runner:
    """Return the runner bundle of `platform`, built unless one of the same sources, wheel and compiler exists.

    `version` is that of executorch, None for the installed one; the wheel of another one is downloaded. `backends` are
    the ids of those that it has beside XNNPACK, with their libraries. A build takes seconds, and two may run at the
    same time. Raises RunnerError or WheelError in one sentence if the platform is unknown, a compiler, a library, the
    wheel or a tool is missing, or the program does not build; nothing half-built remains.
    """
    if platform == SIMULATED:
        return _build_simulated(build_runner(host_platform(), runners_dir, version, backends), runners_dir)
    inputs = find_build_inputs(check_choice("platform", platform, PLATFORMS), runners_dir, version, backends)
    facts = PLATFORM_FACTS[inputs.platform]
    for runner in list_runners(runners_dir, platform):
        if runner.build_key == inputs.build_key:
            (runner.folder / MANIFEST).touch()  # find_runner prefers the newest
            return runner
    base = build_runner(facts.built_as, runners_dir, version) if facts.carries_c_library else None
    try:
        with _built_bundle(runners_dir / platform, inputs, base) as bundle:
            described = {
                "kind": "wheel",
                "platform": inputs.platform,
                "launch": inputs.launch,
                "variants": VARIANTS if facts.can_have_sme else ["sme2_off"],
                "modes": ["timing", "profile", *(["counts"] if facts.counts_kernels else [])],
                "versions": inputs.versions,
                "compiler": inputs.toolchain.version,
                "flags": inputs.flags,
                "source_sha256": inputs.source_sha256,
                "build_key": inputs.build_key,
                "needs": min_versions(bundle),
                "stated_backends": inputs.delegates.backends,
            }
            return publish_runner(bundle, runners_dir, described)
    except OSError as error:
        where = error.filename2 or error.filename or runners_dir
        raise RunnerError(f"the runner for {platform} cannot be built: {error.strerror or error} ({where})") from None


def find_runner_without_build(platform: str, use: Use, runners_dir: Path) -> Runner | None:
    """Return the runner that a sweep would use now; None if it would build one first.

    A runner that the farm built for this machine must match the current sources, wheel and compiler. The others are
    returned unchecked: a registered one has no sources here, and for another platform or version the wheel might have
    to be downloaded.
    """
    newest = find_runner(runners_dir, platform, use)
    is_own = use.version in (None, installed_version())
    if newest is None or newest.kind != "wheel" or platform != host_platform() or not is_own:
        return newest
    try:
        key = find_build_inputs(host_platform(), runners_dir, None, needed_backends(use.delegate) or ()).build_key
    except FarmError:  # nothing can be built here, so the sweep uses the newest
        return newest
    fitting = (each for each in list_runners(runners_dir, platform) if use.variant in each.variants)
    return next((each for each in fitting if each.build_key == key), None)


@contextlib.contextmanager
def _built_bundle(parent: Path, inputs: BuildInputs, base: Runner | None) -> Iterator[Path]:
    """Yield a temporary folder in `parent` with the built program and its libraries, checked.

    If the bundle carries the C library, all other files are copied from `base`, the runner for Linux.
    """
    with work_folder(parent.absolute()) as scratch:
        bundle = scratch / "bundle"
        if base is None:
            log = parent.absolute().parent / f"{inputs.platform}-build.log"
            with plain_folder(scratch) as work:
                built = _compile(inputs, work, log)
                (bundle / "lib").mkdir(parents=True)
                shutil.copy2(built / PROGRAM, bundle / PROGRAM)
                for library in [*inputs.libraries, *(built / "lib").glob("*")]:
                    shutil.copy2(library, bundle / "lib")
        else:
            shutil.copytree(base.folder, bundle, ignore=shutil.ignore_patterns(MANIFEST))
            shutil.copy2(inputs.toolchain.library(LOADER), bundle / "lib" / LOADER)
            while missing := missing_libraries(bundle):
                for name in sorted(missing):
                    shutil.copy2(inputs.toolchain.library(name), bundle / "lib" / name)
        if inputs.platform == host_platform():
            _check_starts(bundle, inputs)
        else:
            check_libraries(bundle, inputs.platform)
        yield bundle


def _compile(inputs: BuildInputs, work: Path, log: Path) -> Path:
    """Configure and build with CMake in `work/build`; return the folder of the program and of the libraries built.

    The output of a build that fails stays in `log`.
    """
    _log.info("building the runner for %s", inputs.platform)
    build, source = work / "build", work / "source"
    project = source / DELEGATE_SOURCES if inputs.delegates.names else source
    shutil.copytree(inputs.sources, source)
    (work / "executorch").symlink_to(inputs.wheel.folder)
    configure = [inputs.cmake, "-S", str(project), "-B", str(build), "-G", "Unix Makefiles"]
    configure += [f"-Dexecutorch_DIR={work / 'executorch' / CMAKE_PACKAGE}", *inputs.flags]
    configure += [f"-DCMAKE_CXX_COMPILER={';'.join(inputs.toolchain.cxx)}"]
    configure += [f"-D{name}={path}" for name, path in inputs.delegates.paths.items()]
    compile_all = [inputs.cmake, "--build", str(build), "--parallel", str(os.cpu_count() or 1)]
    run_steps([configure, compile_all], inputs.platform, log, inputs.toolchain.env, _BUILD_S)
    log.unlink(missing_ok=True)
    return build / "runner" if inputs.delegates.names else build


def missing_libraries(bundle: Path) -> set[str]:
    """Return the shared libraries that a bundle needs but does not contain; raises RunnerError if a file is damaged."""
    libraries = [path for path in (bundle / "lib").iterdir() if path.suffix != GPU_KERNELS]
    needed = {name for path in (bundle / PROGRAM, *libraries) for name in read_binary(path).needed}
    return needed - {path.name for path in libraries}


def check_libraries(bundle: Path, platform: str) -> None:
    """Raise RunnerError if a bundle needs a library that neither it nor a device of `platform` has."""
    facts = PLATFORM_FACTS[check_choice("platform", platform, PLATFORMS)]
    on_device = () if facts.carries_c_library else _SYSTEM_LIBRARIES
    for name in sorted(missing_libraries(bundle)):
        if not name.startswith(on_device):
            raise RunnerError(
                f"the runner that was built for {platform} will not start: it needs {name}, which is not in the bundle"
            )


def _check_starts(bundle: Path, inputs: BuildInputs) -> None:
    """Start a program that was built for this machine; raises RunnerError if it fails or is of another executorch."""
    command, env = [str(bundle / PROGRAM), "--version"], clean_environment()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    try:
        version = str(json.loads(done.stdout)["executorch_version"])
    except (ValueError, KeyError, TypeError):
        cause = done.stderr.strip() or f"exit code {done.returncode}"
        raise RunnerError(f"the runner that was built does not start: {cause}") from None
    if version.partition("+")[0] != inputs.wheel.version.partition("+")[0]:
        raise RunnerError(f"the runner that was built is of executorch {version}, not {inputs.wheel.version}")


def _build_simulated(real: Runner, runners_dir: Path) -> Runner:
    """Return the bundle with a script that waits, and replays recordings of `real`, a runner for this machine.

    The first session of a request (model, inputs, threads, executions, mode) on any simulated device makes the
    recording. Simulated devices share a disk, so the bundle has only the paths of the runner and the recordings.
    """
    folder = (runners_dir / SIMULATED).resolve()
    recordings = folder / "recordings" / real.runner_sha256[:16]
    script = files("tasks.runner").joinpath("simulated.sh").read_text(encoding="utf-8")
    script = script.replace("@RUNNER@", shlex.join(real.command(str(real.folder.resolve()))))
    script = script.replace("@RECORDINGS@", shlex.quote(str(recordings)))
    described = {
        "kind": "simulated",
        "platform": SIMULATED,
        "launch": [PROGRAM],
        "variants": real.variants,
        "modes": real.modes,
        "versions": real.versions,
        "compiler": real.compiler,
        "flags": real.flags,
        "source_sha256": real.source_sha256,
        "build_key": real.build_key,
        "stated_backends": real.stated_backends,
        "provenance": f"replays what the runner {real.runner_sha256[:16]} for {real.platform} recorded",
    }
    with work_folder(folder) as bundle:
        (bundle / PROGRAM).write_text(script, encoding="utf-8")
        (bundle / PROGRAM).chmod(0o755)
        runner = publish_runner(bundle, runners_dir, described)
    (runner.folder / MANIFEST).touch()  # find_runner prefers the newest
    return runner
