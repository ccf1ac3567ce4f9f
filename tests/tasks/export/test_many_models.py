"""The models of ExecuTorch's own tests, and generated ones: nothing that ExecuTorch runs right is refused or wrong."""

from collections import Counter

import pytest

pytest.importorskip("executorch", reason="executorch is not installed (export extra)")
from tests.fixtures import generated_models, suite_models

pytestmark = [pytest.mark.torch, pytest.mark.thorough, pytest.mark.long, pytest.mark.timeout(7200)]


def judged(source: str, pairs: list[tuple[str, str]]) -> Counter[str]:
    """Count the outcomes; fails for one that is the farm's fault, or that a user would not understand."""
    from tests.benchmarks.models import outcomes  # imports the exporter, which takes seconds

    every = list(outcomes(source, pairs))
    assert [each for each in every if each.kind.endswith("by the farm")] == []
    assert [each for each in every if each.is_confusing] == []
    return Counter[str](each.kind for each in every)


def test_no_model_of_executorchs_own_tests_is_refused_or_wrong_by_the_farm() -> None:
    counts = judged("tests.fixtures.suite_models", [(name, "fp32") for name in suite_models.list_models()])
    assert counts["right"] > 480


def test_blocks_in_all_recipes_static_dynamic_and_with_a_state_are_right() -> None:
    pairs = generated_models.list_pairs()
    assert len(pairs) > 200
    counts = judged("tests.fixtures.generated_models", pairs)
    # Others have dynamic sizes that executorch fixes.
    assert counts["right"] + counts["skipped"] > 0.9 * len(pairs)
