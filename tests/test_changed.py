"""`make test CHANGED=1` runs the tests that a change most likely breaks."""

from tests.changed import affected_tests


def test_a_changed_module_affects_the_tests_of_its_package_and_of_those_that_import_it() -> None:
    affected = affected_tests(["tasks/judge/comparison.py"])
    assert {"tests/tasks/judge/test_comparison.py", "tests/test_layers.py"} <= affected
    assert not [file for file in affected if file.startswith(("tests/devices/", "tests/tasks/etdump/"))]


def test_a_changed_view_affects_the_tests_of_sql() -> None:
    assert "tests/sql/test_views_agree.py" in affected_tests(["sql/views/sessions/failed_session.sql"])


def test_changed_dependencies_affect_all_tests() -> None:
    assert affected_tests(["README.md", "pyproject.toml"]) == {"tests"}
