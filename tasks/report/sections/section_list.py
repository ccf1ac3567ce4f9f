"""The sections of the report, in their order."""

from collections.abc import Callable

from tasks.report.data import Answers
from tasks.report.page import Section
from tasks.report.sections.accuracy import accuracy
from tasks.report.sections.advice import advice
from tasks.report.sections.categories import categories
from tasks.report.sections.failures import failures
from tasks.report.sections.latency import latency
from tasks.report.sections.layers import layers
from tasks.report.sections.modules import modules
from tasks.report.sections.operators import operators
from tasks.report.sections.portable import portable
from tasks.report.sections.provenance import provenance
from tasks.report.sections.sme2 import sme2
from tasks.report.sections.threads import threads
from tasks.report.sections.verdicts import verdicts

SECTIONS: tuple[Callable[[Answers], Section], ...] = (
    verdicts,
    latency,
    sme2,
    threads,
    categories,
    operators,
    modules,
    portable,
    advice,
    accuracy,
    layers,
    failures,
    provenance,
)
