"""The sweep file: what to measure, and how often."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from devices.checked_yaml import load_checked
from devices.limits import Limits
from devices.suggest import did_you_mean
from tasks.cell import Mode, Variant
from tasks.export.precision import Precision
from tasks.export.zoo import MODELS
from tasks.verdict.comparison import LEAST_SESSIONS
from tasks.verdict.nights import ALERT_SESSIONS

_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class Terms(BaseModel):
    """What a device and a session must keep to, in a sweep and in a comparison."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interval_percent: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description=(
            "If set, `sessions` is the most: all variants of a model, precision and number of threads end together "
            "once the 95 % intervals of their medians are narrower than this, after at least 8 sessions. With a runner "
            "that does not report the time of each execution (`execution_ns` in its stats.json) none ends early."
        ),
    )
    deadline_s: float = Field(default=120, gt=0, le=86_400, description="Wall time after which a session is ended.")
    cooldown_s: float = Field(default=0, ge=0, le=3600, description="Pause between two sessions.")
    settle_s: float = Field(default=300, ge=0, le=86_400, description="Longest wait for conditions inside the limits.")
    lease_wait_s: float = Field(default=3600, ge=0, le=86_400, description="Longest wait for a device in use.")
    limits: Limits = Field(
        default_factory=Limits, description="Conditions that a session must stay within to be valid."
    )


class SweepSpec(Terms):
    """A matrix of models, precisions, variants and threads, and how each cell is measured."""

    name: str = Field(description="The sweep's name; with the night it makes the sweep's id.")
    models: Annotated[list[str], Field(min_length=1)] = Field(
        description="Short names from the zoo, or package.module:factory."
    )
    precisions: Annotated[list[Precision], Field(min_length=1)] = ["fp32"]
    variants: Annotated[list[Variant], Field(min_length=1)] = ["sme2_on", "sme2_off"]
    threads: Annotated[list[Annotated[int, Field(ge=1, le=256)]], Field(min_length=1)] = [1]
    modes: Annotated[list[Mode], Field(min_length=1)] = ["timing"]
    executions: int = Field(default=20, ge=1, le=100_000, description="Executions per session, warm-up ones included.")
    warmup_executions: int = Field(
        default=3, ge=1, description="First executions of a session, which are excluded from statistics."
    )
    sessions: int = Field(default=3, ge=1, le=1000, description="Sessions per cell: the n of the statistics.")
    noise_sessions: int = Field(
        default=0,
        ge=0,
        le=1000,
        description=(
            "Sessions of each side of a comparison of the first cell with itself, which shows how noisy the device is "
            "that night: 0 for none, or 5 or more."
        ),
    )
    devices: dict[str, str] = Field(
        default_factory=dict, description="Labels that a device must have; empty: every device."
    )
    seed: int = Field(
        default=0, ge=0, lt=2**63, description="Seed of weights, reference inputs and of the order of sessions."
    )

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("a name consists of lower-case letters, digits, - and _, such as nightly")
        return name

    @field_validator("models")
    @classmethod
    def _known_models(cls, models: list[str]) -> list[str]:
        for model in models:
            if model not in MODELS and not _FACTORY.fullmatch(model):
                raise ValueError(
                    f"unknown model `{model}`: not in the zoo ({', '.join(sorted(MODELS))}) and not of the form "
                    f"package.module:factory{did_you_mean(model, MODELS)}"
                )
        return models

    @field_validator("models", "precisions", "variants", "threads", "modes")
    @classmethod
    def _each_once(cls, values: list[str]) -> list[str]:
        for value in values:
            if values.count(value) > 1:
                raise ValueError(f"duplicate entry `{value}`; remove one")
        return values

    @model_validator(mode="after")
    def _sessions_left_to_save(self) -> "SweepSpec":
        if self.interval_percent is not None and self.sessions <= ALERT_SESSIONS:
            raise ValueError(
                f"interval_percent never ends before {ALERT_SESSIONS} sessions, and sessions ({self.sessions}) is the "
                f"most: no session can be saved; set sessions above {ALERT_SESSIONS} or remove interval_percent"
            )
        return self

    @field_validator("noise_sessions")
    @classmethod
    def _enough_for_an_interval(cls, sessions: int) -> int:
        if 0 < sessions < LEAST_SESSIONS:
            raise ValueError(f"noise_sessions must be 0 or at least {LEAST_SESSIONS}, which an interval needs")
        return sessions

    @model_validator(mode="after")
    def _executions_left_to_measure(self) -> "SweepSpec":
        if self.warmup_executions >= self.executions:
            raise ValueError(
                f"executions ({self.executions}) must be more than warmup_executions ({self.warmup_executions})"
            )
        return self


def read_sweep(path: Path) -> SweepSpec:
    """Read and check a sweep file; raises InputError with one sentence: file, line and correction."""
    return load_checked(path, SweepSpec)
