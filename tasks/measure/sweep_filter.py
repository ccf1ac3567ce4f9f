"""The part of a sweep that one start measures."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from devices.errors import InputError
from devices.suggest import did_you_mean
from tasks.bundle.cell import AS_IS, ROOF
from tasks.bundle.delegates import DEFAULT_DELEGATE
from tasks.bundle.model_names import find_model, short_names
from tasks.bundle.runtime import base_model, parse_runtime
from tasks.export.entry import ModelEntry
from tasks.export.recipes import recipe_name
from tasks.measure.sweep_file import SweepSpec


class SweepFilter(BaseModel, extra="forbid", frozen=True):
    """The part of a sweep to measure; empty: all of it. Its sessions have the same ids as in the whole sweep."""

    models: list[str] = Field(default=[], description="Models, as the sweep file names them or as pages show them.")
    precisions: list[str] = Field(default=[], description="Precisions in the sweep file; as_is for .pte files.")
    variants: list[str] = Field(default=[], description="Variants in the sweep file.")
    delegates: list[str] = Field(default=[], description="Delegates in the sweep file, such as openvino+xnnpack.")
    devices: list[str] = Field(default=[], description="Names of devices that the sweep selects.")

    def apply(self, spec: SweepSpec) -> SweepSpec:
        """Return this part of the sweep, without its comparison for noise; InputError for what it does not have."""
        if self == SweepFilter():
            return spec
        recipes = [recipe_name(each) if each != AS_IS else each for each in self.precisions]
        all_recipes = list(dict.fromkeys(recipe for _, recipe in spec.pairs))
        names = {model.name: model for model in spec.models}
        listed = short_names(names)
        chosen = select_names([find_model(each, listed) or each for each in self.models], names, "model", spec.name)
        precisions = select_names(recipes, all_recipes, "precision", spec.name)
        variants = select_names(self.variants, spec.variants, "variant", spec.name)
        programs = [(model.name, _delegate(model), recipe) for model, recipe in spec.pairs]
        of_models = dict.fromkeys(each for name, each, _ in programs if base_model(name) != ROOF)
        delegates = select_names(self.delegates, of_models, "delegate", spec.name)
        left = {base_model(name) for name, each, recipe in programs if each in delegates and recipe in precisions}
        models = [names[name] for name in chosen if name in left]
        if not models:
            raise InputError(f"the sweep {spec.name} has none of these --model in these --precision and --delegate")
        # Without a recipe only .pte files are left, which no recipe concerns; so it is with delegates of entries.
        precisions = [each for each in precisions if each != AS_IS] or spec.precisions
        changed = {"models": models, "precisions": precisions, "variants": variants, "noise_sessions": 0}
        changed["delegates"] = [each for each in spec.delegates if each in delegates] or spec.delegates
        changed["roof"] = spec.roof and not self.models and DEFAULT_DELEGATE in delegates
        return spec.model_copy(update=changed)


def _delegate(model: ModelEntry) -> str:
    return parse_runtime(model.name).delegate or DEFAULT_DELEGATE


def select_names(requested: Sequence[str], available: Iterable[str], kind: str, sweep: str) -> list[str]:
    """Return `requested` in the order of `available`, all of these if it is empty; InputError for an unknown name."""
    every: Collection[str] = list(available)
    for each in requested:
        if each not in every:
            raise InputError(
                f"--{kind} {each}: the sweep {sweep} has no such {kind}; it has {', '.join(every)}"
                f"{did_you_mean(each, every)}"
            )
    return [each for each in every if each in requested or not requested]


def selector_mismatches(selector: Mapping[str, str], labels: Mapping[str, Any]) -> list[str]:
    """Return the reasons why a device with `labels` does not match `selector`; empty if it matches."""
    return [
        f"label {key} is {labels.get(key, 'not set')!s}, the sweep selects {value}"
        for key, value in selector.items()
        if str(labels.get(key)) != value
    ]
