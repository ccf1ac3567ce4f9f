"""Build a model of the library transformers: by its configuration with seeded weights, or from a local folder.

Nothing is downloaded. The text of this file is part of every export key.
"""

from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.entry import ModelEntry
from tasks.export.exported import first_line
from tasks.export.made import Inputs

_TOKENS = 128
_AUDIO_SAMPLES = 16_000


def made_from_transformers(entry: ModelEntry) -> tuple[Any, Inputs]:
    """Return the module and seeded inputs of an entry with `transformers`; raises FarmError."""
    model = load_model(entry)
    for name in ("use_cache", "return_dict"):
        setattr(model.config, name, name == "return_dict")
    return _tensors_only(model), _inputs(model)


def load_model(entry: ModelEntry) -> Any:
    """Return the model of an entry with `transformers`; raises FarmError. One that generates has a head for words."""
    if "/" in (entry.transformers or ""):
        return _from_folder(Path(entry.transformers or ""))
    return _by_config(entry)


def _by_config(entry: ModelEntry) -> Any:
    import transformers

    name = entry.transformers or ""
    config_class = getattr(transformers, name, None)
    if not isinstance(config_class, type) or not issubclass(config_class, transformers.PretrainedConfig):
        raise FarmError(f"transformers {transformers.__version__} has no configuration class {name}")
    try:
        auto = transformers.AutoModelForCausalLM if entry.generate else transformers.AutoModel
        return auto.from_config(config_class(**entry.config))
    except (TypeError, ValueError) as error:
        raise FarmError(f"{name}: no model can be made from this configuration ({first_line(error)})") from None


def _from_folder(folder: Path) -> Any:
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    names = config.architectures or []
    model_class = getattr(transformers, names[0], None) if names else transformers.AutoModel
    if model_class is None:
        raise FarmError(f"{folder}/config.json: transformers {transformers.__version__} has no class {names[0]}")
    return model_class.from_pretrained(folder, local_files_only=True)


def _inputs(model: Any) -> Inputs:
    """Return seeded values for the model's main input, in the shape that its configuration states."""
    import torch

    config, kind = model.config, model.main_input_name
    match kind:
        case "pixel_values":
            size = getattr(config, "image_size", None) or 224
            height, width = size if isinstance(size, list | tuple) else (size, size)
            return (torch.rand(1, getattr(config, "num_channels", 3), height, width),)
        case "input_ids":
            return (torch.randint(0, config.vocab_size, (1, _TOKENS)),)
        case "input_values":
            return (torch.randn(1, _AUDIO_SAMPLES),)
        case "input_features" if hasattr(config, "num_mel_bins"):
            return (torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions),)
    raise FarmError(f"its main input is {kind}, which has no default here; write a factory that returns its inputs")


def _tensors_only(model: Any) -> Any:
    """Wrap the model so that forward takes one tensor and returns a tuple of tensors."""
    import torch
    from torch.utils import _pytree

    class TensorsOnly(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, values: Any) -> Any:
            made = self.model(**{model.main_input_name: values})
            return tuple(each for each in _pytree.tree_leaves(dict(made)) if isinstance(each, torch.Tensor))

    return TensorsOnly()
