"""The files that `etfarm init` writes: settings, devices, a model and a sweep that run as they are."""

from pathlib import Path

from devices.errors import InputError
from devices.settings import FILE

_SETTINGS = """\
# Settings of the farm in this folder. Variables such as ETFARM_DATA_DIR and options of commands come first.
# `etfarm doctor` prints every setting with where its value comes from. Paths start at this file's folder.
inventory: inventory.yaml   # the devices
data_dir: var               # all results: exports, runners, sessions, warehouse, reports
# log: etfarm.log           # the log, one JSON object per line
# notify: slack://...       # who gets the result of each sweep; this file must then have mode 600
"""
_INVENTORY = """\
# The devices. `etfarm devices` shows which of them answer. A name is stored with every result: keep it.
devices:
  - {name: this-machine, transport: local}
  # A Mac or Linux host with an SSH key, and a phone with USB debugging: correct the words after the colons.
  # - {name: mac-m4, transport: ssh, address: mac-m4.lab, user: farm}
  # - {name: pixel-1, transport: adb, serial: 8A1X0EXMPL}
"""
_MODEL = '''\
"""A small model; replace it by yours. `etfarm model check ./model.py:make` exports it and runs it."""

import torch


def make():
    """Return the module and example inputs. Other weights would be another model, so keep the seed."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 3))
    return module.eval(), (torch.randn(1, 3, 96, 96),)
'''
_SWEEP = """\
# What to measure. `etfarm validate sweep.yaml` checks this file, `etfarm sweep sweep.yaml --dry-run` prints the plan.
name: first                     # results of a name are compared from night to night
models:
  - ./model.py:make             # a factory in a file beside this one
precisions: [fp32, fp16]
variants: [sme2_on, sme2_off]   # a device without SME2 runs sme2_off only
sessions: 8                     # per cell: the sample size of the statistics
"""
FILES = {str(FILE): _SETTINGS, "inventory.yaml": _INVENTORY, "model.py": _MODEL, "sweep.yaml": _SWEEP}


def write_starter(folder: Path) -> None:
    """Write FILES into a folder, which is created if necessary; InputError if one exists, then nothing is written."""
    if existing := [str(folder / name) for name in FILES if (folder / name).exists()]:
        raise InputError(f"{', '.join(existing)}: not overwritten; name a new folder, or move what is there")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
