"""Turn the profiling kit's configurations into a sweep file."""

from collections.abc import Sequence

import yaml

from tasks.keep.kit.config import Experiment, KitConfig
from tasks.keep.kit.results import KitResult
from tasks.measure.spec import SweepSpec
from tasks.prepare.export.zoo import MODELS


def sweep_text(name: str, results: Sequence[KitResult]) -> str:
    """Return the text of a sweep file that measures what `results` (at least one) are of, with notes as comments.

    Options of the kit without a counterpart are named in the notes.
    """
    experiments = [result.experiment for result in results]
    # A trace has one execution, so only the others decide the number.
    timed = [result.experiment for result in results if result.mode == "timing"] or experiments
    warmup = max(1, *(each.warmup for each in timed))
    models = list(dict.fromkeys(result.model for result in results))
    spec = SweepSpec.model_validate(
        {
            "name": name,
            "models": [model if model in MODELS else f"your_package.models:{_identifier(model)}" for model in models],
            "precisions": list(dict.fromkeys(result.precision for result in results)),
            "variants": sorted({result.variant for result in results}, reverse=True),
            "threads": sorted({result.threads for result in results}),
            "modes": sorted({result.mode for result in results}),
            "executions": warmup + max(each.runs for each in timed),
            "warmup_executions": warmup,
        }
    )
    notes = "".join(f"# {note}\n" for note in _notes(models, results, experiments))
    body = yaml.safe_dump(spec.model_dump(exclude_unset=True), sort_keys=False, default_flow_style=None, width=100)
    return notes + body


def _notes(models: Sequence[str], results: Sequence[KitResult], experiments: Sequence[Experiment]) -> list[str]:
    notes = [
        f"{model} is not a model of the zoo: replace your_package.models by the module with a factory of it"
        for model in models
        if model not in MODELS
    ]
    for experiment in {each.name: each for each in experiments}.values():
        if experiment.cpu_affinity:
            notes.append(f"not converted: cpu_affinity {experiment.cpu_affinity} of {experiment.name}")
        if experiment.extra_args:
            notes.append(f"not converted: extra_args {' '.join(experiment.extra_args)} of {experiment.name}")
    configs: dict[object, KitConfig] = {config.path: config for result in results for config in result.configs}
    pairs = [pair for config in configs.values() for pair in config.compare_pairs]
    if pairs:
        notes.append("the report compares SME2 on with off; these pairs of the kit are compared in the warehouse:")
        notes += [f"  {_side(pair, 'baseline')} with {_side(pair, 'candidate')}" for pair in pairs]
    if len({result.experiment.runs for result in results if result.mode == "timing"}) > 1:
        notes.append("the experiments have different numbers of runs; executions is the largest")
    return notes


def _side(pair: dict[str, object], side: str) -> str:
    stated = pair.get(side)
    return f"{stated.get('experiment')} t{stated.get('threads')}" if isinstance(stated, dict) else str(stated)


def _identifier(model: str) -> str:
    text = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in model)
    return text if text[:1].isalpha() else f"model_{text}"
