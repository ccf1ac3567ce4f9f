"""Load the bundles of an archive into the warehouse."""

import hashlib
from collections.abc import Container
from pathlib import Path

from sql.warehouse import writing
from tasks.files import work_folder
from tasks.load.load import LoadResult, load_paths, loaded_contents
from tasks.packed import SUFFIX, packed_records, unpack

_PATHS = "UPDATE load_ledger SET path = ? || substr(path, ?) WHERE starts_with(path, ?)"


def load_archive(archive: Path, warehouse: Path, forgotten: Container[str]) -> LoadResult:
    """Load the bundles of an archive that are neither loaded nor forgotten.

    They are unpacked beside the warehouse and removed again; the ledger names the folders that they were packed from.
    Raises BundleError if the archive is damaged.
    """
    hashes = {session_id: hashlib.sha256(text).hexdigest() for session_id, text in packed_records(archive)}
    left_out = [session_id for session_id in hashes if session_id in forgotten]
    loaded = loaded_contents(hashes.values(), warehouse)
    wanted = {key for key, sha256 in hashes.items() if sha256 not in loaded and key not in forgotten}
    result = LoadResult(already=len(hashes) - len(left_out) - len(wanted), forgotten=len(left_out))
    if wanted:
        with work_folder(warehouse.parent) as folder:
            unpack(archive, wanted, folder)
            result.add(load_paths([folder], warehouse))
            with writing(warehouse) as connection:
                origin, prefix = str(archive).removesuffix(SUFFIX), str(folder)
                connection.execute(_PATHS, [origin, len(prefix) + 1, prefix])
    return result
