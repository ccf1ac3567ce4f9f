"""Find the results of the profiling kit: what was measured, from file names and configurations, and how it ended.

The kit reports a crashed runner as success and leaves the ETDump of an earlier run in place. Here a result counts only
if its log and its ETDump do not contradict each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from devices.errors import FarmError, InputError
from devices.untrusted import excerpt
from tasks.bundle.cell import Mode, Variant
from tasks.bundle.values import MAX_INT, first_mistake
from tasks.etdump.columns import Etdump
from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import EtdumpError, read_etdump
from tasks.export.recipes import RECIPES
from tasks.maintain.kit.config import Experiment, KitConfig, check_name, kit_files
from tasks.measure.session.check import variant_contradiction

# `<model>_<experiment>_t<threads>`, where the model may be missing, and one of the endings.
_FILE = re.compile(r"(?P<prefix>.+)_t(?P<threads>\d+)(?P<ending>\.etdump|_latency\.log|_xnntrace\.log|\.log)", re.S)
_USUAL_EXPERIMENT = re.compile(r"(?:(?P<model>.+)_)?(?P<experiment>(?:mac|android)_sme2_(?:on|off)(?:_\w+)?)")
_MODEL = re.compile(rf"(?P<name>.+?)(?:_xnnpack)?_(?P<precision>{'|'.join(RECIPES)}|q8|int8)")
# Digits are limited, because a log may contain anything.
_FAILED = re.compile(r"Command failed with exit code (-?\d{1,9})")
_CRASHED = re.compile(
    r"\b(?:Unexpected error:|Segmentation fault|Aborted|Bus error|Illegal instruction|Killed|Fatal signal)"
)
_EXECUTED = re.compile(r"executed successfully (\d{1,9}) time\(s\) in (\d{1,15}(?:\.\d{1,9})?) ms")


@dataclass(frozen=True)
class KitResult:
    """The files of one experiment with one thread count, and what the kit states about it."""

    experiment: Experiment
    model: str
    precision: str
    variant: Variant
    mode: Mode
    threads: int
    etdump: Path | None
    log: Path | None
    configs: tuple[KitConfig, ...]


@dataclass(frozen=True)
class KitEnd:
    """How a result ended: `executions` are those of the ETDump or, if it failed, as configured; 1 of a trace."""

    executions: int
    status: Literal["succeeded", "failed", "invalid"] = "succeeded"
    code: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None


def find_kit_results(
    folder: Path, configs: Sequence[KitConfig], precision: str | None
) -> tuple[list[KitResult], list[str]]:
    """Return the results below `folder`, and for each that is left out the file, why, and what to do.

    `precision` is for models whose file name does not contain it. A result is left out if its experiment, variant,
    precision or number of threads is unknown. Raises InputError if a folder cannot be read.
    """
    files: dict[tuple[Path, str, int, str], dict[str, Path]] = {}
    for path in kit_files(folder):
        if match := _FILE.fullmatch(path.name):
            is_trace = match["ending"] == "_xnntrace.log"
            key = (path.parent, match["prefix"], int(match["threads"]), "trace" if is_trace else "timing")
            files.setdefault(key, {})["etdump" if match["ending"] == ".etdump" else "log"] = path
    results, left_out = [], []
    for (_, prefix, threads, _), by_kind in files.items():
        try:
            for path in by_kind.values():
                check_name(folder, path)
            result = _build_result(prefix, threads, by_kind, configs, precision)
        except FarmError as error:
            left_out.append(str(error))
            continue
        # The log is the result of a trace; the times of its ETDump, if there is one, include the logging.
        if result.mode == "timing" or result.log:
            results.append(result)
    return results, left_out


def judge_result(result: KitResult, log: str, etdump: Path | None) -> KitEnd:
    """Return how a result ended, from its log and a copy of its ETDump (None without one); the first fault counts."""
    configured = result.experiment.runs
    if failed := _FAILED.search(log):
        code = int(failed[1])
        if code < 0:
            return KitEnd(
                configured, "failed", "runner_crashed", f"the runner was killed by signal {-code}", signal=-code
            )
        return KitEnd(configured, "failed", "runner_failed", f"the runner exited with code {code}", code)
    if crashed := _CRASHED.search(log):
        line = log[log.rfind("\n", 0, crashed.start()) + 1 :][:1000].partition("\n")[0]
        return KitEnd(configured, "failed", "runner_crashed", f"the runner crashed: {excerpt(line)}")
    if result.mode == "trace":
        return KitEnd(1)
    if etdump is None:
        return KitEnd(configured, "failed", "no_etdump", "the runner did not write an ETDump")
    try:
        dump = read_etdump(etdump, name=result.etdump.name if result.etdump else None)
    except EtdumpError as error:
        return KitEnd(configured, "failed", "bad_etdump", str(error))
    if stale := _staleness(result, dump, log):
        return KitEnd(configured, "failed", "stale_etdump", stale)
    names = {dump.names[at] for at in dump.name_id[dump.kind == EventKind.DELEGATED]}
    if contradiction := variant_contradiction(result.variant, sorted(names)):
        return KitEnd(dump.executions, "invalid", "variant", contradiction)
    return KitEnd(dump.executions)


def _staleness(result: KitResult, dump: Etdump, log: str) -> str | None:
    """Return why the ETDump cannot be of the run that the log and the configuration describe, or None."""
    if not dump.executions:
        return "the ETDump contains 0 complete executions"
    is_stated = "runs" in result.experiment.model_fields_set or not all(each.is_manifest for each in result.configs)
    expected = result.experiment.runs if is_stated else dump.executions
    if dump.executions != expected:
        return f"the ETDump contains {dump.executions} executions instead of {expected}: it is of another run"
    if executed := _EXECUTED.search(log):
        logged, logged_ms = int(executed[1]), float(executed[2])
        total_ms = float(dump.execute_ns.sum()) / 1e6
        if logged != dump.executions:
            return f"the log reports {logged} executions, the ETDump contains {dump.executions}: it is of another run"
        # The runner times the same executions from outside, so its total is slightly longer.
        if total_ms > 1.05 * logged_ms + 1 or logged_ms > 1.5 * total_ms + 1 + 0.1 * logged:
            return f"the log reports {logged_ms:g} ms, the ETDump {total_ms:g} ms: it is of another run"
    return None


def _build_result(
    prefix: str, threads: int, files: dict[str, Path], configs: Sequence[KitConfig], precision: str | None
) -> KitResult:
    """Return the result of files by `etdump` and `log`; InputError if its settings are unknown."""
    file = next(iter(files.values()))
    if not 1 <= threads <= MAX_INT:
        raise InputError(f"{file}: `_t{threads}` in its name is not a number of threads; rename it")
    stem, experiment, sources = _identify(file, prefix, configs)
    match = _MODEL.fullmatch(stem)
    recipe = match["precision"] if match else None
    if recipe not in RECIPES:
        if precision is None:
            raise InputError(
                f"{file}: the precision of {stem} is not recorded; pass --precision, one of {', '.join(RECIPES)}"
            )
        recipe = precision
    return KitResult(
        experiment=experiment,
        model=match["name"] if match else stem,
        precision=next(each for each in RECIPES if each == recipe),
        variant=_parse_variant(file, experiment),
        mode="trace" if experiment.mode == "xnntrace" or file.name.endswith("_xnntrace.log") else "timing",
        threads=threads,
        etdump=files.get("etdump"),
        log=files.get("log"),
        configs=sources,
    )


def _parse_variant(file: Path, experiment: Experiment) -> Variant:
    """Return the variant of an experiment's name or runner, by default with SME2; InputError without either."""
    text = f"{experiment.name} {experiment.runner_path or ''}".lower().replace("-", "_")
    if not any(sign in text for sign in ("sme2_off", "sme2_on", "cmake_out/")):
        raise InputError(
            f"{file}: experiment `{experiment.name}` states neither SME2 on nor off; "
            "put sme2_on or sme2_off into its name, in the configuration and in the file names"
        )
    return "sme2_off" if "sme2_off" in text else "sme2_on"


def _identify(file: Path, prefix: str, configs: Sequence[KitConfig]) -> tuple[str, Experiment, tuple[KitConfig, ...]]:
    """Return the model's stem, the experiment, and the configurations and manifests that state it.

    The model is that of the manifests beside or above the file; without one, that of all configurations and manifests;
    without any, that in the usual file names of the kit. Raises InputError if it is unknown or ambiguous.
    """
    candidates = [
        (config, experiment)
        for config in configs
        for experiment in config.experiments
        if prefix in (experiment.name, f"{config.model_stem}_{experiment.name}")
    ]
    nearest = [each for each in candidates if each[0].path.parent in file.parents and each[0].is_manifest]
    stems = {config.model_stem for config, _ in nearest or candidates}
    if len(stems) > 1:
        raise InputError(f"{file}: the model may be {' or '.join(sorted(stems)[:3])}; import each results folder alone")
    if stems:
        stem = stems.pop()
        stating = [each for each in candidates if each[0].model_stem == stem]
        stating.sort(key=lambda each: each[0].is_manifest)  # what ran counts more than what was configured
        fields: dict[str, object] = {}
        for _, experiment in stating:  # only some state the runner
            fields |= experiment.model_dump(exclude_unset=True)
        return stem, Experiment.model_validate(fields), tuple(config for config, _ in stating)
    usual = _USUAL_EXPERIMENT.fullmatch(prefix)
    if not usual or not usual["model"]:
        raise InputError(f"{file}: no configuration or manifest states its model; copy the kit's JSON beside it")
    try:
        return usual["model"], Experiment(name=usual["experiment"]), ()
    except ValidationError as error:
        raise InputError(f"{file}: not an experiment of the kit ({first_mistake(error)}); rename it") from None
