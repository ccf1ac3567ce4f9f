"""The sections of the report, in their order."""

from collections.abc import Callable

from tasks.pages.report.page import Section
from tasks.pages.report.sections.accuracy import accuracy
from tasks.pages.report.sections.advice import advice
from tasks.pages.report.sections.categories import categories
from tasks.pages.report.sections.failures import failures
from tasks.pages.report.sections.latency import latency
from tasks.pages.report.sections.layers import layers
from tasks.pages.report.sections.modules import modules
from tasks.pages.report.sections.operators import operators
from tasks.pages.report.sections.portable import portable
from tasks.pages.report.sections.provenance import provenance
from tasks.pages.report.sections.sme2 import sme2
from tasks.pages.report.sections.threads import threads
from tasks.pages.report.sections.verdicts import verdicts
from tasks.results.reader import Answers

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
