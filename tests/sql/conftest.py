"""What tests of the warehouse share."""

import pytest

from tests.fixtures.warehouse import BundleMaker


@pytest.fixture(scope="module")
def farm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """One warehouse for all questions of a module, with the sessions that its function `write_sessions` writes."""
    maker = BundleMaker(tmp_path_factory.mktemp("farm"))
    request.module.write_sessions(maker)
    assert maker.load().refused == []
    return maker
