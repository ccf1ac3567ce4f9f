"""The sections of the report, in their order."""

from collections.abc import Callable

from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Section
from tasks.analyse.report.sections.accuracy import accuracy
from tasks.analyse.report.sections.advice import advice
from tasks.analyse.report.sections.categories import categories
from tasks.analyse.report.sections.failures import failures
from tasks.analyse.report.sections.latency import latency
from tasks.analyse.report.sections.layers import layers
from tasks.analyse.report.sections.modules import modules
from tasks.analyse.report.sections.operators import operators
from tasks.analyse.report.sections.portable import portable
from tasks.analyse.report.sections.provenance import provenance
from tasks.analyse.report.sections.sme2 import sme2
from tasks.analyse.report.sections.threads import threads
from tasks.analyse.report.sections.verdicts import verdicts

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
