"""A .pte file that the user brings: kept like an export, without inputs and reference outputs of its own."""

import json
import shutil
from pathlib import Path

from devices.errors import InputError
from tasks.export.export import Export, read_export
from tasks.export.key import EXPORT_VERSION
from tasks.files import publish_folder, sha256_of

_MAGIC = b"ET12"
_MAGIC_AT = 4


def given_export(pte: Path, exports_dir: Path) -> Export:
    """Return the export of a .pte file.

    One in the folder of an export has its inputs and outputs. Any other is copied into `exports_dir`, named after its
    file: the runner fills its inputs with a seeded pattern, and its outputs are not compared. Raises InputError.
    """
    if not pte.is_file():
        raise InputError(f"{pte}: no such file; name a .pte file")
    with pte.open("rb") as stream:
        head = stream.read(_MAGIC_AT + len(_MAGIC))
    if head[_MAGIC_AT:] != _MAGIC:
        raise InputError(f"{pte}: not an ExecuTorch program; name a .pte file")
    sha256 = sha256_of(pte)
    if (pte.parent / "export.json").is_file():
        export = read_export(pte.parent)
        if export.pte_sha256 == sha256 and export.pte.name == pte.name:
            return export
    key = f"given-{pte.stem}-{sha256[:16]}"
    folder = exports_dir / key
    described = {
        "export_version": EXPORT_VERSION,
        "export_key": key,
        "model": pte.stem,
        "precision": "as_is",
        "seed": 0,
        "pte_sha256": sha256,
        "pte_bytes": pte.stat().st_size,
        "versions": {},
        "inputs": [],
        "outputs": [],
        "delegated": [],
        "portable": [],
        "export_s": 0.0,
    }
    with publish_folder(folder) as aside:
        shutil.copyfile(pte, aside / "model.pte")
        (aside / "export.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return read_export(folder)
