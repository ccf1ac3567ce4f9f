"""Entries of a sweep's `models`: a model of the zoo, your own factory, a .pte file, or a model of transformers.

A text is short for a mapping with one key: `mobilenet_v2`, `team.models:detector` and `./model.py:detector` for
`factory`, `./detector.pte` for `pte`, `transformers:BertConfig` for `transformers`.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, model_serializer, model_validator

from devices.errors import InputError
from devices.suggest import did_you_mean
from tasks.bundle.cell import ROOF
from tasks.bundle.delegates import DEFAULT_DELEGATE, StatedDelegate
from tasks.bundle.runtime import Runtime, case_name
from tasks.export.generate_options import GenerateOptions
from tasks.export.user_code import check_function, list_functions
from tasks.export.zoo import MODELS

_PACKAGE_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_FILE_FACTORY = re.compile(r"(?P<path>.+\.py):(?P<factory>[A-Za-z_]\w*)")
_NAME = re.compile(r"[A-Za-z0-9_.][\w./:+-]*")
_NO_NAME = re.compile(r"[^\w./:+-]", re.ASCII)
_CASE = re.compile(r"[A-Za-z0-9][\w.-]*")
_SOURCES = ("factory", "pte", "transformers")
_TRANSFORMERS = "transformers:"
EXPORT_DEADLINE_S = 900.0
"""Longest time of an export that states no other."""
ELSEWHERE = "elsewhere"
"""Key of the validation context: if true, files of entries are not checked, because they are on another machine."""
_ONLY_FOR = dict.fromkeys(("data", "inputs", "expected", "shapes", "etrecord"), "pte") | dict.fromkeys(
    ("config", "generate"), "transformers"
)


class AccuracyRequirement(BaseModel, extra="forbid", frozen=True):
    """Accuracy that the outputs of a model need for its times to count; replaces the limits of the recipe."""

    min_snr_db: float | None = Field(
        default=None,
        ge=-20,
        le=200,
        description="Minimum SNR in dB against fp32 or, for a .pte file, against `expected`.",
        examples=[20],
    )
    top1: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Minimum share of rows with the same top class as fp32 or `expected`.",
        examples=[0.99],
    )
    score: float | None = Field(
        default=None, description="Minimum mean of the factory's `score` over the samples.", examples=[0.7]
    )
    samples_below: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Allowed share of samples below the least SNR; default: none.",
        examples=[0.05],
    )

    @model_validator(mode="after")
    def _check_not_empty(self) -> "AccuracyRequirement":
        if not self.model_dump(exclude_none=True):
            raise ValueError(f"`accuracy` is empty; set one of {', '.join(type(self).model_fields)}")
        return self


class ModelEntry(BaseModel, extra="forbid", frozen=True):
    """One model to measure; paths are absolute."""

    name: str = Field(
        default="",
        description="The name in all results; default: the source as written; of an absolute path, its file. "
        "Tables and pages shorten `./net.py:build` to `net`; SQL has it in full.",
        examples=["detector"],
    )
    factory: str | None = Field(
        default=None,
        description="A model of the zoo, package.module:factory, or file.py:factory beside the sweep.",
        examples=["mobilenet_v2"],
    )
    pte: Path | None = Field(
        default=None,
        description="A program that is exported already; its precision is `as_is`.",
        examples=["./detector.pte"],
    )
    data: list[Path] = Field(
        default=[],
        description="Files (.ptd) with weights that the program does not contain.",
        examples=[["./detector.ptd"]],
    )
    inputs: list[Path] = Field(
        default=[], description="Raw bytes of each input; default: seeded values.", examples=[["./in0.bin"]]
    )
    expected: list[Path] = Field(
        default=[], description="Raw bytes of each correct output for these inputs.", examples=[["./ref.bin"]]
    )
    shapes: dict[str, list[list[int]]] = Field(
        default={},
        description="Shapes to measure of a dynamic program: for each name, the sizes of every input.",
        examples=[{"small": [[1, 3, 96, 96]], "large": [[1, 3, 320, 320]]}],
    )
    etrecord: Path | None = Field(
        default=None, description="Maps its operators to the source model.", examples=["./detector.etrecord"]
    )
    transformers: str | None = Field(
        default=None,
        description="A configuration class, such as BertConfig, or a folder with weights.",
        examples=["BertConfig"],
    )
    config: dict[str, Any] = Field(
        default={}, description="Arguments of the configuration class.", examples=[{"num_hidden_layers": 2}]
    )
    generate: GenerateOptions | None = Field(
        default=None,
        description="Measures a language model as {prefill: [512], depth: [0, 512], decode: 64}.",
        examples=[{"prefill": [512], "depth": [0, 512], "decode": 64}],
    )
    samples: Path | None = Field(
        default=None,
        description="A folder with a file per sample: inputs that judge each recipe, and calibrate int8.",
        examples=["./images"],
    )
    keep_samples: bool = Field(
        default=False, description="Copy the samples into the folder of each export.", examples=[True]
    )
    delegate: StatedDelegate | None = Field(
        default=None,
        description="What it is lowered to, instead of the sweep's `delegates`: xnnpack, portable, openvino, coreml, "
        "mlx, your own partitioner as package.module:function, or a list by priority.",
        examples=["openvino", ["openvino", "xnnpack"]],
    )
    accuracy: AccuracyRequirement | None = Field(
        default=None,
        description="Required accuracy of its outputs, such as {min_snr_db: 20, top1: 0.99}.",
        examples=[{"min_snr_db": 20, "top1": 0.99}],
    )

    @property
    def needs_score(self) -> bool:
        return self.accuracy is not None and self.accuracy.score is not None

    def lowered(self, delegate: str | None = None, version: str | None = None) -> "ModelEntry":
        """Return the entry of the model's program for a delegate, exported with a version of ExecuTorch.

        Both stand in its name; XNNPACK and the farm's own version (None) add nothing.
        """
        words = Runtime(export=version, delegate=None if delegate == DEFAULT_DELEGATE else delegate).of_program
        return self.model_copy(update={"name": case_name(self.name, words)})

    @property
    def weights(self) -> Path | None:
        """The folder with the weights of a model of transformers; None without one."""
        return Path(self.transformers) if self.transformers and "/" in self.transformers else None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """Return a schema that accepts the keys, or the text that is short for them."""
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, written: Any) -> Any:
        """Return the keys that a text is short for; anything else is returned as it is."""
        if not isinstance(written, str):
            return written
        if written.startswith(_TRANSFORMERS):
            return {"name": written, "transformers": written.removeprefix(_TRANSFORMERS)}
        name = written.rpartition("/")[2] if written.startswith("/") else written  # without this machine's folders
        return {"name": _NO_NAME.sub("_", name), "pte" if written.endswith((".pte", ".bpte")) else "factory": written}

    @model_validator(mode="after")
    def _check_and_resolve(self, info: ValidationInfo) -> "ModelEntry":
        """Return the entry with its name and absolute paths; raises ValueError if its keys do not belong together."""
        sources = [key for key in _SOURCES if getattr(self, key) is not None]
        if len(sources) != 1:
            raise ValueError(f"a model has exactly one of {', '.join(_SOURCES)}")
        for key, source in _ONLY_FOR.items():
            if getattr(self, key) and source != sources[0]:
                raise ValueError(f"`{key}` belongs to models with `{source}`")
        if self.shapes and self.inputs:
            raise ValueError("`shapes` generates its inputs; leave `inputs` out")
        if unnamed := [name for name in self.shapes if not _CASE.fullmatch(name)]:
            raise ValueError(f"`shapes`: the name `{unnamed[0]}` must consist of letters, digits and _ . -")
        if self.expected and not self.inputs:
            raise ValueError("`expected` needs `inputs`: they are the outputs for these inputs")
        self._check_samples()
        name = self.name or _NO_NAME.sub("_", str(getattr(self, sources[0])))  # a folder may have spaces
        if not _NAME.fullmatch(name):
            raise ValueError(f"the name `{name}` must consist of letters, digits and _ . / : + -; set `name`")
        context = info.context or {}
        resolved = {} if context.get(ELSEWHERE) else _resolve_files(self, context.get("folder", Path()))
        return self.model_copy(update={"name": name, **resolved})

    def _check_samples(self) -> None:
        """Raise ValueError if samples, or what is required of them, do not belong to the model."""
        if self.samples and self.pte:
            cause = "`samples` are compared with eager PyTorch, which a .pte file does not contain"
            raise ValueError(f"{cause}; bring the model by `factory`, or one sample by `inputs` and `expected`")
        if self.samples and self.generate:
            raise ValueError("`samples` does not belong to `generate`; judge the model by a `prompt` and a `text`")
        if self.keep_samples and not self.samples:
            raise ValueError("`keep_samples` needs `samples`")
        of_samples = (self.accuracy.score, self.accuracy.samples_below) if self.accuracy else ()
        if not self.samples and any(each is not None for each in of_samples):
            raise ValueError("`score` and `samples_below` of `accuracy` need `samples`")
        if self.needs_score and not self.factory:
            raise ValueError("`score` of `accuracy` needs a model with `factory`, which returns a function `score`")

    @model_serializer
    def _as_written(self) -> Any:
        """Return a text if the entry is only a factory with its name, otherwise the keys that have a value."""
        values = {key: getattr(self, key) for key in type(self).model_fields if getattr(self, key)}
        values |= {key: str(value) for key, value in values.items() if isinstance(value, Path)}
        return self.name if values == {"name": self.name, "factory": self.name} else values


@dataclass(frozen=True)
class ExportRequest:
    model: str | ModelEntry
    precision: str
    exports_dir: Path
    seed: int = 0
    taps: bool = False
    """Whether to export the program for the mode numerics, which also returns the values of the model's layers."""
    deadline_s: float = EXPORT_DEADLINE_S

    @cached_property
    def entry(self) -> ModelEntry:
        """The entry of `model`; raises InputError."""
        return parse_entry(self.model)


def parse_entry(model: str | ModelEntry, samples: Path | None = None, delegate: str | None = None) -> ModelEntry:
    """Return the entry that a text means, relative to the working directory; InputError.

    It has the `samples` and is for the `delegate`, if they are given.
    """
    if isinstance(model, ModelEntry):
        return model
    try:
        entry = ModelEntry.model_validate(model)
        more = {key: value for key, value in (("samples", samples), ("delegate", delegate)) if value is not None}
        if not more:
            return entry
        values = {key: getattr(entry, key) for key in type(entry).model_fields if getattr(entry, key)}
        entry = ModelEntry.model_validate(values | more)
        return entry.lowered(entry.delegate)
    except ValidationError as error:
        raise InputError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def is_factory_name(text: str) -> bool:
    """Return whether a text is a model of the zoo or has the form of package.module:factory."""
    return text in MODELS or bool(_PACKAGE_FACTORY.fullmatch(text))


def _resolve_files(entry: ModelEntry, folder: Path) -> dict[str, Any]:
    """Return the fields that name files, with absolute paths; raises ValueError if a file or the factory is missing."""
    resolved: dict[str, Any] = {}
    if entry.factory:
        resolved["factory"] = _resolve_factory(entry.factory, folder)
    for key in ("pte", "etrecord"):
        if path := getattr(entry, key):
            resolved[key] = _resolve_file(path, folder)
    if entry.samples:
        resolved["samples"] = (folder / entry.samples).absolute()
        sample_files(resolved["samples"])
    for key in ("data", "inputs", "expected"):
        resolved[key] = [_resolve_file(path, folder) for path in getattr(entry, key)]
    if entry.generate:
        texts = {
            key: _resolve_file(path, folder) for key in ("prompt", "text") if (path := getattr(entry.generate, key))
        }
        resolved["generate"] = entry.generate.model_copy(update=texts)
    if entry.transformers and not entry.transformers.isidentifier():
        weights = (folder / entry.transformers).absolute()
        if not (weights / "config.json").is_file():
            raise ValueError(f"{weights}: no folder with config.json; name one, or a class such as BertConfig")
        resolved["transformers"] = str(weights)
    return resolved


def sample_files(folder: Path) -> list[Path]:
    """Return the files of a folder of samples by name, without hidden ones; raises ValueError if there is none."""
    if not folder.is_dir():
        raise ValueError(
            f"{folder}: no such folder of samples; correct the path, which starts at the folder of the sweep file"
        )
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise ValueError(f"{folder}: no samples; put a file for each sample there, such as .npz, .pt or .bin")
    return files


def _resolve_factory(written: str, folder: Path) -> str:
    """Return a factory's name, of `file.py:factory` with the absolute path; raises ValueError if it is none."""
    if in_file := _FILE_FACTORY.fullmatch(written):
        path = _resolve_file(Path(in_file["path"]), folder)
        check_function(path, in_file["factory"])
        return f"{path}:{in_file['factory']}"
    if is_factory_name(written):
        return written
    if written.endswith(".py"):
        path = _resolve_file(Path(written), folder)
        examples = " or ".join(f"`{written}:{name}`" for name in list_functions(path))
        raise ValueError(f"`{written}` names no function; write {examples or f'`{written}:make`, and define it there'}")
    models = sorted(MODELS.keys() - {ROOF})
    remedy = did_you_mean(written, models) or (
        "; use package.module:factory, ./file.py:factory, ./model.pte, transformers:BertConfig, "
        f"or a model of the zoo: {', '.join(models)}"
    )
    raise ValueError(f"unknown model `{written}`{remedy}")


def _resolve_file(path: Path, folder: Path) -> Path:
    absolute = (folder / path).absolute()
    if not absolute.is_file():
        raise ValueError(f"{absolute}: no such file; correct the path, which starts at the folder of the sweep file")
    return absolute
