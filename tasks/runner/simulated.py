"""The runner of simulated devices: it waits and leaves what this machine's runner recorded for the same request."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

from devices.platform import SIMULATED
from tasks.runner.manifest import MANIFEST, PROGRAM, Runner, publish_runner
from tasks.store.files import work_folder

_OF_REAL = ("variants", "modes", "versions", "compiler", "flags", "source_sha256", "build_key")


def replaying(real: Runner, runners_dir: Path) -> Runner:
    """Return the bundle whose program replays recordings of `real`, a runner for this machine.

    The first session of a request (model, inputs, threads, executions, mode) on any simulated device makes the
    recording. A bundle contains only a script with the places of both, since many simulated devices share a disk.
    """
    folder = (runners_dir / SIMULATED).resolve()
    recordings = folder / "recordings" / real.runner_sha256[:16]
    script = files("tasks.runner").joinpath("simulated.sh").read_text(encoding="utf-8")
    script = script.replace("@RUNNER@", shlex.join(real.command(str(real.folder.resolve()))))
    script = script.replace("@RECORDINGS@", shlex.quote(str(recordings)))
    described: dict[str, Any] = {
        "kind": "simulated",
        "platform": SIMULATED,
        "launch": [PROGRAM],
        **{name: getattr(real, name) for name in _OF_REAL},
        "provenance": f"replays what the runner {real.runner_sha256[:16]} for {real.platform} recorded",
        "needs": {},
    }
    with work_folder(folder) as made:
        (made / PROGRAM).write_text(script, encoding="utf-8")
        (made / PROGRAM).chmod(0o755)
        runner = publish_runner(made, runners_dir, described)
    (runner.folder / MANIFEST).touch()  # find_runner prefers the newest
    return runner
