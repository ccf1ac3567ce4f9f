"""What a device and a delegate decide about the sessions of a sweep: variants, threads, modes, and what is skipped."""

from collections.abc import Collection, Iterable, Sequence

from devices.ondevice.facts import Facts
from tasks.bundle.cell import Mode, Use, Variant
from tasks.bundle.delegates import (
    DEFAULT_DELEGATE,
    delegate_names,
    needed_backends,
    unproven_notes,
    uses_threads,
    uses_xnnpack,
)
from tasks.bundle.runtime import parse_runtime
from tasks.bundle.variant_word import variant_word
from tasks.measure.sweep_file import SweepSpec, ThreadCount
from tasks.runner.delegate_files import why_no_library

_KERNELS_OF_XNNPACK: frozenset[Mode] = frozenset({"profile", "counts", "trace"})
"""The modes whose evidence is about the kernels of XNNPACK. Mode numerics compares layers of any delegate: those that
return their values are not fused with others, which holds for XNNPACK, too."""


def possible_variants(variants: Iterable[Variant], facts: Facts) -> list[Variant]:
    """Return the variants that a device may be able to run: those whose extension its facts do not exclude."""
    excluded = {"sme2_on": facts.sme2 is False, "sme1": facts.sme is False, "sme2_off": False}
    return [variant for variant in variants if not excluded[variant]]


def thread_counts(threads: Iterable[ThreadCount], facts: Facts) -> list[int]:
    """Return the numbers of threads for a device, each once; `all` is left out if its cores are unknown."""
    counts = [facts.cores if each == "all" else each for each in threads]
    return list(dict.fromkeys(count for count in counts if count))


def variants_of(delegate: str | None, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants of a case: SME2 is switched in XNNPACK alone, so a case without it has one.

    That is `sme2_off` if it is among them, which every device runs: the case then has one name on all devices.
    """
    if uses_xnnpack(delegate):
        return list(variants)
    return ["sme2_off"] if "sme2_off" in variants else list(variants[:1])


def threads_of(delegate: str | None, threads: Sequence[int]) -> list[int]:
    """Return the numbers of threads of a case: the first one if its delegate takes none."""
    return list(threads if uses_threads(delegate) else threads[:1])


def modes_of(delegate: str | None, modes: Iterable[Mode]) -> list[Mode]:
    """Return the modes that say something about a case."""
    return [mode for mode in modes if uses_xnnpack(delegate) or mode not in _KERNELS_OF_XNNPACK]


def spec_delegates(spec: SweepSpec) -> list[str | None]:
    """Return the delegates of a sweep as words of its cases, each once; None is XNNPACK."""
    return list(dict.fromkeys(parse_runtime(entry.name).delegate for entry, _ in spec.pairs))


def why_skipped(spec: SweepSpec, facts: Facts, uses: Collection[Use]) -> dict[str | None, str]:
    """Return why a device skips delegates, by their words; `uses` are those of the runners that there are.

    A device of an unknown platform skips none.
    """
    with_runner = {use.delegate for use in uses}
    others = [each for each in spec_delegates(spec) if each not in with_runner]
    reasons = {each: why_no_runner(each, facts.platform) for each in others} if facts.platform else {}
    return {each: reason for each, reason in reasons.items() if reason}


def why_no_runner(delegate: str | None, platform: str) -> str | None:
    """Return why no runner of a platform can be built for a delegate; None if one can."""
    backends = needed_backends(delegate)
    if backends is not None:
        return why_no_library(platform, backends)
    register = "`etfarm devices runner register --backend ID`"
    return f"{delegate}: your own partitioner needs a registered runner for {platform}; add one with {register}"


def describe_rules(spec: SweepSpec, facts: Facts, uses: Collection[Use]) -> list[str]:
    """Return what a plan must state of its delegates on a device.

    Which it skips, which sessions of others are left out by a rule, and which nobody ever ran on such a device.
    """
    skipped = why_skipped(spec, facts, uses)
    variants, threads = possible_variants(spec.variants, facts), thread_counts(spec.threads, facts)
    every = [each for each in spec_delegates(spec) if each not in skipped]
    with_one_variant = [each for each in every if len(variants_of(each, variants)) < len(variants)]
    with_one_count = [each for each in every if len(threads_of(each, threads)) < len(threads)]
    without_modes = [each for each in every if len(modes_of(each, spec.modes)) < len(spec.modes)]
    sentences = [f"skipped: {reason}" for reason in dict.fromkeys(skipped.values())]
    if facts.platform is None and (unsure := [each for each in every if needed_backends(each) != frozenset()]):
        sentences.append(f"{_listed(unsure)}: may be skipped; its platform is unknown until it answers")
    if with_one_variant:
        word = variant_word(variants_of(with_one_variant[0], variants)[0])
        sentences.append(f"{_listed(with_one_variant)}: {word} only, since SME2 is switched in XNNPACK alone")
    if with_one_count:
        sentences.append(f"{_listed(with_one_count)}: threads {threads[0]} only, since no other number changes it")
    if without_modes:
        modes = ", ".join(mode for mode in spec.modes if mode in _KERNELS_OF_XNNPACK)
        sentences.append(f"{_listed(without_modes)}: without {modes}, which is evidence of XNNPACK's kernels")
    names = dict.fromkeys(name for each in every for name in delegate_names(each))
    return [*sentences, *unproven_notes(names, facts.platform)]


def _listed(delegates: Iterable[str | None]) -> str:
    return ", ".join(each or DEFAULT_DELEGATE for each in delegates)
