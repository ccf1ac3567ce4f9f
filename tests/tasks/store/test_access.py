"""Where bundles are kept is named by a folder or a URL: what cannot be used is said, and a folder needs no packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.bundle.record import BundleError
from tasks.store.store import open_store
from tasks.store.workspace import Workspace


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("s3://nobody-made-this/x", "s3://nobody-made-this/x: there is no bucket `nobody-made-this`; create it"),
        ("s3://key:hidden@bucket/x", "the location contains credentials; remove them and set them in the environment"),
        ("nothing://bucket", "nothing://bucket: nothing is not supported"),
    ],
)
def test_a_location_that_cannot_be_used_is_answered_with_what_to_do(
    bucket: str, tmp_path: Path, location: str, sentence: str
) -> None:
    assert bucket
    with pytest.raises((InputError, BundleError)) as caught:
        open_store(location, Workspace(tmp_path)).sweep_ids()
    assert sentence in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_local_store_imports_nothing_of_object_storage() -> None:
    # given a fresh Python that opens the store of a folder
    program = (
        "import sys\nfrom pathlib import Path\nfrom tasks.store.store import open_store\n"
        "from tasks.store.workspace import Workspace\n"
        "open_store(None, Workspace(Path('nowhere'))).sweep_ids()\n"
        "sys.exit(', '.join({'fsspec', 's3fs', 'botocore', 'aiohttp'} & set(sys.modules)) or 0)\n"
    )
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    # then none of its packages was imported
    assert fresh.returncode == 0, fresh.stderr
