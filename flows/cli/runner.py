"""`etfarm devices runner`: build or register the programs that run models on devices."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from flows.cli.options import DEFAULT_DATA_DIR, DataDirOption, TextOrJsonOption
from flows.terminal import show, show_pieces
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.runner.manifest import Runner

app = typer.Typer(name="runner", help="Build or register the runners of devices.", no_args_is_help=True)


@app.command(epilog="Example: etfarm devices runner build --platform linux-aarch64")
def build(
    platform: Annotated[str | None, typer.Option(help="Platform to build for; this machine's if omitted.")] = None,
    source: Annotated[
        Path | None, typer.Option(help="Checkout of ExecuTorch: build its executor_runner instead, and register it.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="With --source: log the kernels that XNNPACK selects (mode trace).")
    ] = False,
    variant: Annotated[
        str | None, typer.Option(help="With --source: sme2_on or sme2_off; with SME2 on arm64 if omitted.")
    ] = None,
    executorch: Annotated[
        str | None, typer.Option(help="Version of ExecuTorch, 1.5.0 or later; the installed one if omitted.")
    ] = None,
    delegate: Annotated[
        list[str] | None, typer.Option(help="Delegate beside XNNPACK: openvino, coreml or mlx; may be repeated.")
    ] = None,
    format: TextOrJsonOption = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Build a runner from the wheel or from sources; print its folder, or with --format json what it is.

    The compiler of this machine builds for its own platform, a GNU cross compiler for the other processor of Linux, and
    zig (`pip install 'etfarm[cross]'`) for macos-arm64. android-arm64 needs no NDK: its runner is that of linux-aarch64
    with the C library beside it.
    """
    from devices.platform import PLATFORM_FACTS, PLATFORMS
    from tasks.bundle.delegates import unproven_notes
    from tasks.runner.build import build_runner
    from tasks.runner.delegate_files import delegate_backends
    from tasks.runner.manifest import RunnerError
    from tasks.runner.register import build_from_source
    from tasks.runner.toolchain import find_toolchain, host_platform

    if source is None and (trace or variant):
        raise RunnerError("--trace and --variant need --source, a checkout of ExecuTorch; the wheel has no trace log")
    if source is not None and executorch:
        raise RunnerError("--executorch is a version of the wheel; check that version out in --source instead")
    if source is not None and delegate:
        raise RunnerError(
            "--delegate needs libraries of the wheel; register what you build from --source with --backend"
        )
    name, runners = platform or host_platform(), Workspace(data_dir).runners
    if source is None:
        for target in [each for each in PLATFORMS if each == name]:
            compiler = find_toolchain(target, runners).version
            show(f"runner for {target}: built as {PLATFORM_FACTS[target].built_as} with {compiler}", err=True)
        done = build_runner(name, runners, executorch, delegate_backends(delegate or []))
        for note in unproven_notes(delegate or [], name):
            show(note, err=True)
    else:
        tell = partial(show, err=True)
        done = build_from_source(source, runners, platform=name, variant=variant, trace=trace, report=tell)
    _show(done, format)


@app.command(
    epilog="Example: etfarm devices runner register build/executor_runner --platform android-arm64 --variant sme2_off "
    '--mode trace --provenance "executorch 1.5.1, NDK r28, XNN_LOG_LEVEL=5"'
)
def register(
    program: Annotated[Path, typer.Argument(help="The program, or the folder with it and its libraries.")],
    platform: Annotated[str, typer.Option(help="Platform it was built for.")],
    variant: Annotated[str, typer.Option(help="Variant it was built for: sme2_on, sme1 or sme2_off.")],
    mode: Annotated[str, typer.Option(help="timing; or trace if it logs the kernels that XNNPACK selects.")],
    provenance: Annotated[
        str, typer.Option(prompt="Provenance (source, commit, flags)", help="Source, commit and flags.")
    ],
    executorch: Annotated[
        str | None, typer.Option(help="Its version of ExecuTorch, for sessions that state it; if omitted, the others.")
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(help="Id of a backend that it has, such as VulkanBackend; may be repeated. If omitted: unknown."),
    ] = None,
    format: TextOrJsonOption = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Register an executor_runner that you built; print its folder, or with --format json what it is."""
    from tasks.bundle.cell import Mode, Use, Variant
    from tasks.runner.register import register_runner

    use = Use(cast(Variant, variant), cast(Mode, mode), executorch)  # checked there
    done = register_runner(
        program,
        Workspace(data_dir).runners,
        platform=platform,
        use=use,
        provenance=provenance,
        backends=backend or (),
    )
    _show(done, format)


def _show(runner: "Runner", form: str) -> None:
    if form == "text":
        show(runner.folder)
        return
    about = {name: getattr(runner, name) for name in ("platform", "kind", "runner_sha256")}
    about |= {"backends": sorted(runner.backends or ()), "folder": str(runner.folder.absolute())}
    show_pieces([json.dumps(about, indent=1) + "\n"])
