"""Build a model of the library transformers: by its configuration with seeded weights, or from a local folder.

With `generate`, the entry is a language model with a prompt. Nothing is downloaded.
"""

from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.entry import ModelEntry
from tasks.export.exported import first_line
from tasks.export.factory import Inputs
from tasks.export.language_methods import language_methods

_TOKENS = 128
_AUDIO_SAMPLES = 16_000
_WINDOW_TOKENS = 512
_PARTS = ("text_config", "vision_config", "audio_config")
"""Fields of a configuration with those of its networks."""


def build_transformers_model(entry: ModelEntry) -> Any:
    """Return the model of an entry with `transformers`, in the form that a factory returns; raises FarmError."""
    model = _load_model(entry)
    if hasattr(type(model), "set_experts_implementation") and hasattr(model.config, "num_experts_per_tok"):
        model.set_experts_implementation("batched_mm")  # the default depends on data, which an export cannot follow
    _check_can_be_measured(model, entry)
    if entry.generate:
        return _build_generation(model, entry)
    model.config.use_cache, model.config.return_dict = False, True
    return _wrap_tensors_only(model), _default_inputs(model)


def _load_model(entry: ModelEntry) -> Any:
    """Return a model from a folder with weights, or with seeded weights of a configuration class; raises FarmError."""
    import transformers

    version, name = transformers.__version__, entry.transformers or ""
    if entry.weights:
        names = transformers.AutoConfig.from_pretrained(entry.weights, local_files_only=True).architectures or []
        model_class = getattr(transformers, names[0], None) if names else transformers.AutoModel
        if model_class is None:
            raise FarmError(f"{entry.weights}/config.json: transformers {version} has no class {names[0]}")
        return model_class.from_pretrained(entry.weights, local_files_only=True)
    config_class = getattr(transformers, name, None)
    if not isinstance(config_class, type) or not issubclass(config_class, transformers.PretrainedConfig):
        raise FarmError(f"transformers {version} has no configuration class {name}")
    try:  # with `generate`, the model needs its language-model head
        auto = transformers.AutoModelForCausalLM if entry.generate else transformers.AutoModel
        return auto.from_config(config_class(**entry.config))
    except (TypeError, ValueError) as error:
        if "Unrecognized configuration class" in str(error):
            remedy = "leave `generate` out" if entry.generate else "write a factory"
            raise FarmError(f"transformers {version} has no {auto.__name__} for {name}; {remedy}") from None
        raise FarmError(f"{name}: no model can be built from this configuration ({first_line(error)})") from None


def _check_can_be_measured(model: Any, entry: ModelEntry) -> None:
    """Raise FarmError for a model that is several networks, or that `generate` cannot measure."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING

    config, name = model.config, type(model.config).__name__
    parts = [type(part).__name__ for key in _PARTS if (part := getattr(config, key, None))]
    if parts and not entry.generate:
        raise FarmError(f"{name} takes several kinds of inputs; measure its networks, such as {' and '.join(parts)}")
    if config.is_encoder_decoder:
        encoder = f"a factory that returns ({type(model).__name__}(config).get_encoder(), its inputs)"
        raise FarmError(f"{name} is an encoder and a decoder, which are two programs; measure the encoder by {encoder}")
    if entry.generate and type(config) in MODEL_FOR_MASKED_LM_MAPPING and not getattr(config, "is_decoder", False):
        raise FarmError(f"{name} is an encoder, which writes no text; leave `generate` out")


def _default_inputs(model: Any) -> Inputs:
    """Return random values for the model's main input in its configured shape; raises FarmError for other inputs."""
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


def _wrap_tensors_only(model: Any) -> Any:
    """Wrap the model so that forward takes one tensor and returns a tuple of tensors."""
    import torch
    from torch.utils import _pytree

    class TensorsOnly(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, values: Any) -> Any:
            outputs = self.model(**{model.main_input_name: values})
            return tuple(each for each in _pytree.tree_leaves(dict(outputs)) if isinstance(each, torch.Tensor))

    return TensorsOnly()


def _build_generation(model: Any, entry: ModelEntry) -> dict[str, Any]:
    """Return the methods of a language model for the entry's prompt, by default of seeded token ids.

    If the entry has a text, the first prefill gets a function that computes the perplexity. Raises FarmError if the
    prompt is too short.
    """
    import torch

    options = entry.generate
    assert options is not None
    count = options.prompt_tokens
    if options.prompt:
        tokens = _tokenize(options.prompt, entry)
        if len(tokens) < count:
            raise FarmError(f"{options.prompt}: has {len(tokens)} tokens; the longest prompt and one more are {count}")
    else:
        tokens = torch.randint(0, model.config.get_text_config().vocab_size, (count,))
    content = language_methods(model, tokens[:count], options)
    if options.text:
        text = _tokenize(options.text, entry)
        content["methods"][f"pp{options.prefill[0]}"]["perplexity"] = lambda: perplexity(model, text)
    return content


def perplexity(model: Any, tokens: Any) -> float:
    """Return the perplexity of a causal language model on a text, a tensor (n,), in windows of up to 512 tokens."""
    import torch

    losses: list[Any] = []
    with torch.no_grad():
        for window in tokens.split(_WINDOW_TOKENS):
            if len(window) > 1:
                scores = model(window[None], use_cache=False).logits[0, :-1].float()
                losses.append(torch.nn.functional.cross_entropy(scores, window[1:], reduction="none"))
    return float(torch.cat(losses).mean().exp())


def _tokenize(text: Path, entry: ModelEntry) -> Any:
    """Return the token ids (n,) of a text file, at least 2, by the tokenizer in an entry's folder; raises FarmError."""
    import torch
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(Path(entry.transformers or ""), local_files_only=True)
    except (OSError, ValueError) as error:
        raise FarmError(f"{text} needs a tokenizer in {entry.transformers} ({first_line(error)})") from None
    ids = tokenizer(text.read_text(encoding="utf-8"))["input_ids"]
    if len(ids) < 2:
        raise FarmError(f"{text}: has {len(ids)} tokens; write a longer text")
    return torch.tensor(ids)
