"""What to do about a session that failed or is invalid, by its reason code."""

_AGAIN = "run the sweep again"
_DEFAULT = "Run the sweep again: sessions that failed are repeated, finished ones are kept"

# By reason_code, as tasks/measure/session and flows record it.
_REMEDIES = {
    "model_crashed": "Export the model again; ExecuTorch may not be able to run it",
    "runner_crashed": "Run the command from its session.json on the device; its log and signal show where it crashed",
    "runner_failed": "Read the last line of its log and run the command from its session.json on the device",
    "deadline_exceeded": "If the model is only slow, raise `deadline_s` in the sweep file or lower `executions`",
    "no_etdump": "Use a runner with the event tracer, such as the farm's runner from `etfarm devices runner build`",
    "bad_etdump": f"Check the device for a full disk or a restart, then {_AGAIN}",
    "incomplete_etdump": f"Check its log for an early end of the runner, then {_AGAIN}",
    "no_kernels": "Build the runner again with `etfarm devices runner build`",
    "bad_stats": "Run the command from its session.json on the device and check the stats.json that it writes",
    "file_refused": "Run the command from its session.json on the device and check the file that the reason names",
    "not_loadable": f"Check the field that the reason names, then {_AGAIN}",
    "farm_error": "Report the error with farm_error.txt of the bundle, then run the sweep again",
    "no_stats": f"Check the device for a full disk, then {_AGAIN}",
    "wrong_output": "Compare the outputs of the export with those of the model: their number, size or values differ",
    "threads": "Lower `threads` to the cores of the device that its `cpu_affinity` allows",
    "variant": "Compare `sme_reported` and `sme2_reported` in stats.json with the names; do not compare its variants",
    "thermal": "Cool the device, raise `cooldown_s` or `settle_s`, or raise the limit that the reason names",
    "battery": "Charge the device or lower `min_battery_percent`",
    "load": "End other programs on the device or raise the limit that the reason names",
    "memory": "End other programs on the device or restart it, or change the limit that the reason names",
    "slowdown": "Cool the device and end other programs; `etfarm sql longest-waits` shows its waits",
    "not_alone": f"Wait until the other farm has finished, then {_AGAIN}",
    "contradiction": "Build the runner again (`etfarm devices runner build`): it contradicts itself",
    "clock": f"Let NTP set the clock of the machine that measures and keep it from sleeping, then {_AGAIN}",
    "no_conditions": f"Check the device for a full disk, then {_AGAIN}",
    "export_failed": f"Fix the error that the reason names, then {_AGAIN}",
    "no_runner": "Build a runner with `etfarm devices runner build`, or register one with its command `register`",
    "no_backend": "Lower the model to XNNPACK, or register a runner with its backend: `etfarm devices runner register`",
    "device_too_old": "Build the runner on a machine with the version that the device has, and register it here",
    "device_lost": f"Check the device's cable, network and power with `etfarm devices`, then {_AGAIN}",
    "device_refused": f"Grant the access that the reason names, then {_AGAIN}",
    "device_busy": f"Wait until the device is free, then {_AGAIN}",
    "lease_lost": f"Another process took over the device; wait until it has finished, then {_AGAIN}",
    "transfer_failed": f"Check the disk that the reason names and the link to the device, then {_AGAIN}",
    "file_missing": f"Check whether something else removes files below the root of the device, then {_AGAIN}",
    "file_changed": "Do not change models and runners while a sweep pushes them; run the sweep again",
    "output_too_long": "Run the command from its session.json on the device and read what it prints",
    "device_unusable": "Check the device with `etfarm devices`, clear a quarantine with `etfarm devices release`, "
    f"then {_AGAIN}",
    "no_space_on_device": f"Free disk space on the device, then {_AGAIN}",
}

OF_DEVICE = {
    "device_lost", "device_refused", "device_busy", "device_unusable", "device_too_old", "lease_lost", "no_runner",
    "no_space_on_device", "transfer_failed",
}  # fmt: skip
"""Reason codes that are about the device, whatever model should have run."""


def remedy(reason_code: str | None) -> str:
    """Return what to do about a session that ended for this reason, one sentence; code is between backticks."""
    return f"{_REMEDIES.get(reason_code or '', _DEFAULT)}."
