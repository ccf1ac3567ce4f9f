"""`make test CHANGED=1` runs the tests that a change most likely breaks."""

import pytest

from tests.changed import affected_tests


def test_a_changed_module_affects_the_tests_of_its_package_and_of_those_that_import_it() -> None:
    affected = affected_tests(["tasks/judge/comparison.py"])
    assert {"tests/tasks/judge/test_comparison.py", "tests/test_layers.py"} <= affected
    assert not [file for file in affected if file.startswith(("tests/devices/", "tests/tasks/etdump/"))]


def test_a_changed_view_affects_the_tests_of_sql() -> None:
    assert "tests/sql/test_views_agree.py" in affected_tests(["sql/views/sessions/failed_session.sql"])


@pytest.mark.parametrize(
    ("file", "user"),
    [
        ("tests/fixtures/big_farm_sql/night.sql", "tests/tasks/pages/site/test_pages.py"),
        ("tests/fixtures/bundles/smoke-2026-11-20/0000000000000001/model.etdump", "tests/tasks/load/test_load.py"),
        ("tests/tasks/pages/conftest.py", "tests/tasks/pages/site/test_pages.py"),
    ],
)
def test_a_changed_fixture_affects_the_tests_that_use_it_whatever_kind_of_file_it_is(file: str, user: str) -> None:
    assert user in affected_tests([file])


def test_changed_dependencies_affect_all_tests() -> None:
    assert affected_tests(["README.md", "pyproject.toml"]) == {"tests"}
