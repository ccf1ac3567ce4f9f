"""The sweep file: what to measure, and how often."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator, model_validator

from devices.checked_yaml import load_checked
from devices.errors import FarmError, InputError
from devices.start_limits import Limits
from tasks.bundle.cell import AS_IS, ROOF, Mode, Variant
from tasks.bundle.delegates import DEFAULT_DELEGATE, StatedDelegate
from tasks.bundle.robust_statistics import ALERT_SESSIONS, MIN_SESSIONS
from tasks.bundle.runtime import Runtime, base_model, parse_runtime
from tasks.bundle.runtime_options import delegate_of, for_delegate
from tasks.bundle.values import first_mistake
from tasks.export.entry import EXPORT_DEADLINE_S, ModelEntry
from tasks.export.recipes import product_recipe, recipe_name
from tasks.measure.run_options import RunOptions
from tasks.runner.executorch_versions import ExecutorchVersions

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_CLOCK_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
ThreadCount = Annotated[int, Field(ge=1, le=256)] | Literal["all"]


def _recipe(written: Any) -> str:
    try:
        return recipe_name(written)
    except FarmError as error:
        raise ValueError(str(error)) from None


# A text, or the mapping as which YAML reads `fp16 except: [layer_norm]`.
Precision = Annotated[
    str, BeforeValidator(_recipe, json_schema_input_type=str | dict[str, list[str] | dict[str, int | str]])
]


def _matching(pattern: re.Pattern[str]) -> Any:
    """Return what an editor checks; the validator states the mistake in a sentence."""
    return {"pattern": f"^{pattern.pattern}$"}


_ROOF_ENTRY = ModelEntry.model_validate(ROOF)


class MeasurementSettings(BaseModel, extra="forbid", frozen=True):
    """Time limits, priority and condition limits of sessions, in a sweep and in a comparison."""

    interval_percent: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description=(
            "Enables early stopping; `sessions` becomes the maximum. All variants of a model, precision and number of "
            "threads stop together once the 95 % intervals of their times are narrower than this, after at least 8 "
            "sessions. A runner without times per execution (`execution_ns` in its stats.json) never stops early."
        ),
        examples=[3],
    )
    deadline_s: float = Field(
        default=120, gt=0, le=86_400, description="Wall time after which a session is ended.", examples=[300]
    )
    cooldown_s: float = Field(default=0, ge=0, le=3600, description="Pause between two sessions.", examples=[10])
    settle_s: float = Field(
        default=300, ge=0, le=86_400, description="Longest wait for conditions inside the limits.", examples=[600]
    )
    lease_wait_s: float = Field(
        default=3600, ge=0, le=86_400, description="Longest wait for a device in use.", examples=[600]
    )
    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description=(
            "A sweep of higher priority gets a device first, also from one that measures on it: after its session, "
            "which takes `deadline_s` at most. That one then waits again, up to `lease_wait_s`."
        ),
        examples=[10],
    )
    limits: Limits = Field(
        default_factory=Limits,
        description="Conditions that a session must stay within to be valid.",
        examples=[{"max_temperature_c": 45, "min_battery_percent": 40}],
    )


class SweepSpec(MeasurementSettings, frozen=True):
    """A matrix of models, precisions, variants and threads, and how each cell is measured."""

    name: str = Field(
        description="The sweep's name; with the night it makes the sweep's id.",
        json_schema_extra=_matching(_NAME),
        examples=["nightly"],
    )
    models: Annotated[list[ModelEntry], Field(min_length=1)] = Field(
        description=(
            "Models of the zoo, package.module:factory, ./file.py:factory, ./model.pte, transformers:BertConfig, or a "
            "mapping with `name` and the details of one of these."
        ),
        examples=[["mobilenet_v2", {"name": "wide", "factory": "mobilenet_v2"}]],
    )
    precisions: Annotated[list[Precision], Field(min_length=1)] = Field(
        default=["fp32"],
        description="Recipes: fp32, fp16, int8_static, ..., `fp16 except: [layer_norm]`, or your own.",
        examples=[["fp32", {"fp16 except": ["layer_norm"]}]],
    )
    variants: Annotated[list[Variant], Field(min_length=1)] = Field(
        default=["sme2_on", "sme1", "sme2_off"],
        description="What XNNPACK may use; a device measures those that it has.",
        examples=[["sme2_on", "sme2_off"]],
    )
    threads: Annotated[list[ThreadCount], Field(min_length=1)] = Field(
        default=[1],
        description="Numbers of threads, a number first; `all` for all cores of the device.",
        examples=[[1, 2, "all"]],
    )
    modes: Annotated[list[Mode], Field(min_length=1)] = Field(
        default=["timing"],
        description="What sessions record: `timing` is latency, the others are evidence.",
        examples=[["timing", "counts"]],
    )
    delegates: Annotated[list[StatedDelegate], Field(min_length=1)] = Field(
        default=[DEFAULT_DELEGATE],
        description=(
            "What models are lowered to, each measured: xnnpack, portable (nothing), openvino, coreml, mlx, your own "
            "partitioner as package.module:function, or a list by priority. Others than xnnpack are part of a case's "
            "name, so that each has its own series."
        ),
        examples=[["xnnpack", "portable", ["openvino", "xnnpack"]]],
    )
    executorch: Annotated[list[ExecutorchVersions], Field(min_length=1)] = Field(
        default=[ExecutorchVersions()],
        description=(
            "Versions of ExecuTorch to compare: `1.5.0` exports and executes, {export: 1.4.1, runner: 1.5.1} states "
            "both, `own` is the farm's. Stated ones are part of a case's name, so that each has its own series."
        ),
        examples=[["own", "1.5.0", {"export": "1.4.1"}]],
    )
    options: Annotated[list[RunOptions], Field(min_length=1)] = Field(
        default=[RunOptions()],
        description="Run-time options to compare, such as [{}, {load: mmap}]; {} is the default.",
        examples=[[{}, {"load": "mmap"}]],
    )
    export_deadline_s: float = Field(
        default=EXPORT_DEADLINE_S,
        gt=0,
        le=86_400,
        description="Wall time after which an export is ended.",
        examples=[3600],
    )
    executions: int = Field(
        default=20, ge=1, le=100_000, description="Executions per session, warm-up ones included.", examples=[55]
    )
    warmup_executions: int = Field(
        default=3, ge=1, description="First executions of a session, which are excluded from statistics.", examples=[5]
    )
    sessions: int = Field(
        default=3, ge=1, le=1000, description="Sessions per cell: the n of the statistics.", examples=[8]
    )
    noise_sessions: int = Field(
        default=0,
        ge=0,
        le=1000,
        description=(
            "Sessions of each side of a comparison of the first cell with itself, which shows how noisy the device is "
            "on a night: 0 for none, or 5 or more."
        ),
        examples=[8],
    )
    roof: bool = Field(
        default=False,
        description=(
            "Also measures what each device can do at most, with which operators are compared: a large matrix product "
            "in each precision, variant and number of threads, in at most 8 sessions, and how fast memory and caches "
            "are read. Emulated devices are left out."
        ),
        examples=[True],
    )
    finish_by: str | None = Field(
        default=None,
        json_schema_extra=_matching(_CLOCK_TIME),
        description=(
            "Local time, such as 07:00, of the machine that starts the sweep; if it has passed today, tomorrow's. A "
            "device starts no session that would not end before, judged by the median time of its sessions so far: "
            "comparisons for noise are dropped first, then evidence modes, then the last rounds of timing. It decides "
            "how many sessions there are, not what one of them measures, so it is not part of a cell or a session id."
        ),
        examples=["07:00"],
    )
    devices: dict[str, str] = Field(
        default_factory=dict,
        description="Labels that a device must have; empty: every device.",
        examples=[{"tier": "nightly"}],
    )
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="Seed of weights, reference inputs and of the order of sessions.",
        examples=[7],
    )

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("a name consists of lower-case letters, digits, - and _, such as nightly")
        return name

    @field_validator("finish_by", mode="before")
    @classmethod
    def _clock_time(cls, written: Any) -> Any:
        if written is not None and not (isinstance(written, str) and _CLOCK_TIME.fullmatch(written)):
            raise ValueError('a time consists of hours and minutes in quotes, such as "07:00" or "22:30"')
        return written

    @field_validator("modes")
    @classmethod
    def _measured_modes(cls, modes: list[Mode]) -> list[Mode]:
        if "selected" in modes:
            raise ValueError(
                "mode `selected` exists in older bundles only; write `counts`, which counts calls of kernels"
            )
        return modes

    @field_validator("threads")
    @classmethod
    def _number_first(cls, threads: list[ThreadCount]) -> list[ThreadCount]:
        if threads[0] == "all":
            raise ValueError("the first entry must be a number; write `all` after it")
        return threads

    @field_validator("models")
    @classmethod
    def _each_name_once(cls, models: list[ModelEntry]) -> list[ModelEntry]:
        names = [model.name for model in models]
        for name in names:
            if base_model(name) == ROOF:
                raise ValueError(f"`{ROOF}` is not a model; remove it and write `roof: true`")
            if names.count(name) > 1:
                raise ValueError(f"duplicate model `{name}`; remove one or set another `name`")
        return models

    @property
    def pairs(self) -> list[tuple[ModelEntry, str]]:
        """Each model with each recipe; a .pte file that exists already is not converted and has one, `as_is`.

        With `roof`, its matrix product is one of them. A model by another delegate than XNNPACK, or that a stated
        version of ExecuTorch exports, is another model, `name@delegate=openvino,export=1.4.1`.
        """
        models = [(model, [AS_IS] if model.pte else self.precisions) for model in self.models]
        if self.roof:
            models.append((_ROOF_ENTRY, list(dict.fromkeys(map(product_recipe, self.precisions)))))
        return [
            (model.lowered(runtime.delegate, runtime.export), recipe)
            for model, recipes in models
            for runtime in self._program_runtimes(model)
            for recipe in recipes
        ]

    def _program_runtimes(self, model: ModelEntry) -> list[Runtime]:
        """Return the delegate and the version of each program of a model; a .pte file and the roof have one delegate.

        The roof is what XNNPACK reaches, with which operators are compared.
        """
        is_fixed = model.pte or model.name == ROOF
        delegates = [model.delegate or DEFAULT_DELEGATE] if model.delegate or is_fixed else self.delegates
        versions = [None] if model.pte else list(dict.fromkeys(each.export for each in self.executorch))
        return [Runtime(export=version, delegate=delegate) for delegate in delegates for version in versions]

    def for_device(self, *, emulated: bool) -> "SweepSpec":
        """Return what a device measures: times of an emulated one mean nothing, so it has no roof."""
        return self.model_copy(update={"roof": False}) if emulated else self

    def runtimes_of(self, entry: ModelEntry) -> list[str]:
        """Return what executes a model of `pairs`: the words that its cases add to their names; empty by default.

        Options of a delegate that the model is not lowered to are left out of its cases.
        """
        export, delegate = parse_runtime(entry.name).export, parse_runtime(entry.name).delegate
        runners = [each.runner for each in self.executorch if entry.pte or each.export == export]
        every = [for_delegate(options.words, delegate) for options in self.options]
        runtimes = [Runtime(None, runner, options) for runner in runners for options in every]
        return list(dict.fromkeys(runtime.of_run for runtime in runtimes))

    @field_validator("precisions", "variants", "threads", "modes", "delegates", "executorch", "options")
    @classmethod
    def _each_once(cls, values: list[str]) -> list[str]:
        for value in values:
            if values.count(value) > 1:
                raise ValueError(f"duplicate entry `{value}`; remove one")
        return values

    @model_validator(mode="after")
    def _options_of_delegates(self) -> "SweepSpec":
        words = {parse_runtime(entry.name).delegate for entry, _ in self.pairs}
        for options in self.options:
            used = {each for word in words for each in for_delegate(options.words, word)}
            if left := next((each for each in options.words if each not in used), None):
                name, value = left
                of = delegate_of(name)
                raise ValueError(
                    f"options `{name}: {value}`: an option of {of}, which no model of the sweep is lowered to; add "
                    f"{of} to `delegates`, or remove the option"
                )
        return self

    @model_validator(mode="after")
    def _sessions_left_to_save(self) -> "SweepSpec":
        if self.interval_percent is not None and self.sessions <= ALERT_SESSIONS:
            raise ValueError(
                f"interval_percent never ends before {ALERT_SESSIONS} sessions, and sessions ({self.sessions}) is the "
                f"maximum: no session can be saved; set sessions above {ALERT_SESSIONS} or remove interval_percent"
            )
        return self

    @field_validator("noise_sessions")
    @classmethod
    def _enough_for_an_interval(cls, sessions: int) -> int:
        if 0 < sessions < MIN_SESSIONS:
            raise ValueError(f"noise_sessions must be 0 or at least {MIN_SESSIONS}, which an interval needs")
        return sessions

    @model_validator(mode="after")
    def _something_to_measure(self) -> "SweepSpec":
        if self.warmup_executions >= self.executions:
            raise ValueError(
                f"executions ({self.executions}) must be more than warmup_executions ({self.warmup_executions})"
            )
        if self.roof and "timing" not in self.modes:
            raise ValueError("roof is measured in mode timing; add it to modes or remove roof")
        return self


def sweep_of_model(name: str, model: str | ModelEntry, precision: str) -> SweepSpec:
    """Return the sweep of one model; a text is as in a sweep file of the present folder. InputError for a mistake."""
    try:
        return SweepSpec.model_validate({"name": name, "models": [model], "precisions": [precision]})
    except ValidationError as error:
        raise InputError(f"--model {model}: {first_mistake(error)}") from None


def read_sweep(path: Path) -> SweepSpec:
    """Read and check a sweep file; raises InputError with one sentence: file, line and correction."""
    return load_checked(path, SweepSpec)
