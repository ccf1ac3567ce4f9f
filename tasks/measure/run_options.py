"""Run-time options of ExecuTorch and its delegates that a sweep compares."""

from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from devices.suggest import did_you_mean
from tasks.bundle.runtime import case_name, parse_runtime
from tasks.bundle.runtime_options import SETTINGS, UNCHECKED

_MAX_CHARS = 63
"""Of a key, as the runtime limits it, and of a value, since both stand in names."""


class RunOptions(BaseModel, extra="allow", frozen=True):
    """One set of options; what it does not state is as the runtime does it by default."""

    load: Literal["file", "mmap", "mmap_mlock", "mmap_try_mlock", "mmap_madvise"] | None = Field(
        default=None,
        description=(
            "How the program gets into memory: file reads it (the default), mmap maps it, mmap_mlock also locks it, "
            "mmap_try_mlock locks what the system allows, mmap_madvise maps it and announces that all is read."
        ),
        examples=["mmap"],
    )
    weight_cache: bool | None = Field(
        default=None,
        description="Whether delegates of XNNPACK share packed weights (weight_cache_enabled).",
        examples=[True],
    )
    packed_cache: Literal[True] | None = Field(
        default=None,
        description=(
            "XNNPACK keeps packed weights in a file (packed_cache_path). Each session starts the model twice: the "
            "first start writes the file, the second one reads it and is measured."
        ),
        examples=[True],
    )
    workspace: Literal["disabled", "per_model", "global"] | None = Field(
        default=None,
        description="Which delegates of XNNPACK share a workspace (workspace_sharing_mode).",
        examples=["per_model"],
    )
    compute_unit: Literal["all", "cpu_only", "cpu_and_gpu", "cpu_and_ne"] | None = Field(
        default=None,
        description=(
            "Where Core ML may compute (compute_unit): all (its default), the CPU only, or also the GPU or the Neural "
            "Engine. Core ML decides which operators it places there, and does not return the option."
        ),
        examples=["cpu_and_ne"],
    )
    unchecked: Literal[True] | None = Field(
        default=None,
        description=(
            "Allows other keys of XNNPACK, with true, false, an integer or a text. The runtime accepts every key, also "
            "one that it does not have: nothing shows that it had an effect."
        ),
        examples=[True],
    )

    @model_validator(mode="after")
    def _other_keys_are_unchecked(self) -> "RunOptions":
        others: dict[str, Any] = self.model_extra or {}
        options = [name for name in type(self).model_fields if name != UNCHECKED]
        for key, value in others.items():
            if named := next((each for each in SETTINGS if each.key == key), None):
                raise ValueError(f"`{key}`: write the option `{named.name}: {named.value}`, which sets it")
            if not self.unchecked:
                other = f"`{UNCHECKED}: true` to pass a key to XNNPACK that the farm cannot check"
                near = did_you_mean(key, options)
                raise ValueError(f"unknown option `{key}`; use {', '.join(options)}, or add {other}{near}")
            word = (key, _text(value))
            is_word = parse_runtime(case_name("model", "=".join(word))).options == (word,)
            if value is None or not is_word or max(map(len, word)) > _MAX_CHARS:
                one = f"of at most {_MAX_CHARS} characters each, such as some_key: true"
                raise ValueError(f"`{key}`: not a key and value of a backend; write one {one}")
        if self.unchecked and not others:
            raise ValueError(f"`{UNCHECKED}` is for keys that are not in the list of options; add one or remove it")
        if self.packed_cache and self.weight_cache is False:
            raise ValueError("`packed_cache` needs the weight cache; remove `weight_cache: false`")
        return self

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Name and value of each stated option as they stand in the name of a case, sorted."""
        return tuple(sorted((key, _text(value)) for key, value in self.model_dump(exclude_none=True).items()))

    def __str__(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.words) or "{}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
