"""One device of the lab as a test breaks it, and the stand-in runner that stops where the test wants."""

import contextlib
import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from lab_fixtures import Lab, LabDevice
from test_measure import etdump_of

from devices.inventory import DeviceSpec
from tasks.bundle import SweepNight
from tasks.files import sha256_of
from tasks.runner_bundle import publish_runner

NIGHT = SweepNight(sweep_id="survival-2026-11-20", name="survival", night="2026-11-20")
PLATFORM = "linux-x86_64"
LONG_FILE_BYTES = 60_000_000
STAGES = ("push", "run", "pull")

# Files in the device's root say at which of its starts there the runner stops, hangs for good or writes a long log.
RUNNER = f"""#!/bin/sh
for flag; do case $flag in
    --etdump_path=*) etdump=${{flag#*=}};; --output_file=*) output=${{flag#*=}};; --model_path=*) model=${{flag#*=}};;
esac; done
root=${{model%/blobs/*}}
echo "${{output%/*}} ${{ADBD_PORT:-}}" >>"$root/ran"
number=$(($(wc -l <"$root/ran")))
is_now() {{ [ "$(cat "$root/$1" 2>/dev/null)" = "$number" ]; }}
other=$(cat "$root/measuring" 2>/dev/null)
[ -z "$other" ] || ! kill -0 "$other" 2>/dev/null || echo "$other beside $$" >>"$root/overlaps"
echo $$ >"$root/measuring"
if is_now hold; then : >"$root/held"; while is_now hold; do sleep 0.1; done; fi
if is_now hang; then trap '' TERM; : >"$root/held"; while :; do sleep 600; done; fi
if is_now noise; then
    line=$(printf %01000d 0); lines={LONG_FILE_BYTES // 1001}
    while [ "$lines" -gt 0 ]; do echo "$line"; lines=$((lines - 1)); done >&2
fi
cp "$model" "$etdump" || exit 1
printf '\\0\\0\\200\\77' >"$output-0.bin"
rm -f "$root/measuring"
"""


@dataclasses.dataclass(frozen=True)
class Site:
    """One device of the lab as a test breaks it: its entry in the inventory, and its root as this machine sees it."""

    spec: DeviceSpec
    root: Path
    part: LabDevice

    @property
    def name(self) -> str:
        return self.spec.name

    def at_start(self, number: int, what: str) -> None:
        """Make the runner `hold`, `hang` or write `noise` at its n-th start on this device."""
        (self.root / what).write_text(f"{number}\n", encoding="utf-8")

    def go_on(self) -> None:
        """Let a runner that holds come to its end."""
        (self.root / "hold").unlink()

    def starts(self) -> list[str]:
        """The session's folder on the device at each start of the runner."""
        lines = (self.root / "ran").read_text(encoding="utf-8").splitlines() if (self.root / "ran").exists() else []
        return [line.rpartition(" ")[0] for line in lines]

    def stop_at(self, stage: str) -> None:
        """Make the second session stop in the middle of its run, or give it something long to pull."""
        if stage == "run":
            self.at_start(2, "hold")
        if stage == "pull":
            self.at_start(2, "noise")

    def is_at(self, stage: str, scratch: Path | None) -> bool:
        """Whether a session is there now; `scratch` is where what it made is collected."""
        if stage == "push":
            return any(_size(path) > 1 << 20 for path in (self.root / "incoming").glob("*.part"))
        if stage == "run":
            return (self.root / "held").exists()
        return scratch is not None and any(_size(path) > 1 << 20 for path in scratch.glob(".*.part"))

    def behind(self, port: int, lab: Lab, folder: Path) -> "Site":
        """The same device, reached through a port of this machine."""
        if self.spec.transport == "adb":
            return self.renamed(self.name, address=f"127.0.0.1:{port}")
        said = (lab.var / "lab/ssh_config").read_text(encoding="utf-8")
        through = f"HostName 127.0.0.1\n    HostKeyAlias {self.part.address}\n    Port {port}\n    #"
        config = folder / f"ssh_config-{port}"
        config.write_text(said.replace("HostName", through), encoding="utf-8")
        return self.renamed(self.name, ssh_config=config)

    def renamed(self, name: str, **changes: Any) -> "Site":
        """The same device in another farm's inventory."""
        return dataclasses.replace(self, spec=self.spec.model_copy(update={"name": name, **changes}))


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def publish_stand_in(folder: Path, var: Path, script: str) -> None:
    """Register a shell script as the runner of PLATFORM."""
    made = folder / "made"
    made.mkdir()
    (made / "executor_runner").write_text(script, encoding="utf-8")
    (made / "executor_runner").chmod(0o755)
    described = {"kind": "registered", "platform": PLATFORM, "launch": ["executor_runner"], "flags": []}
    described |= {"variants": ["sme2_off"], "modes": ["timing"], "versions": {}, "provenance": "a stand-in"}
    described |= dict.fromkeys(("compiler", "source_sha256", "build_key"))
    publish_runner(made, var / "runners", described)


def write_export(folder: Path, input_bytes: int) -> Path:
    """An export whose model.pte is the ETDump that the stand-in runner hands out, with one input of that length."""
    folder.mkdir(parents=True)
    (folder / "model.pte").write_bytes(etdump_of(3))
    np.ones(1, np.float32).tofile(folder / "output-0.bin")
    (folder / "input-0.bin").write_bytes(os.urandom(1 << 20) * (input_bytes >> 20))
    files = {
        name: {"file": f"{name}.bin", "sha256": sha256_of(folder / f"{name}.bin"), "dtype": "float32", "shape": [1]}
        for name in ("input-0", "output-0")
    }
    said = {
        "export_version": 1,
        "export_key": hashlib.sha256(b"linear").hexdigest()[:16],
        "model": "linear",
        "precision": "fp32",
        "seed": 0,
        "pte_sha256": sha256_of(folder / "model.pte"),
        "pte_bytes": (folder / "model.pte").stat().st_size,
        "versions": {},
        "inputs": [files["input-0"]],
        "outputs": [files["output-0"]],
        "delegated": [],
        "portable": [],
        "export_s": 1.0,
    }
    (folder / "export.json").write_text(json.dumps(said), encoding="utf-8")
    return folder
