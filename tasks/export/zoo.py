"""The models measured by default: short name -> factory; torch and transformers are imported inside the factories.

A factory has no parameters and returns the module and its example inputs (a tuple of tensors). The caller seeds torch
first, so weights and inputs depend only on the seed; nothing is downloaded. Architectures from transformers are the
published ones with random weights, which is sufficient for latency.
"""

from collections.abc import Callable
from typing import Any

Factory = Callable[[], tuple[Any, tuple[Any, ...]]]


def toy_cnn() -> tuple[Any, tuple[Any, ...]]:
    """Return a small CNN on (1, 3, 32, 32) images; XNNPACK does not support its layer norm."""
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 32, 1),
        nn.ReLU(),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.LayerNorm(64),
        nn.Linear(64, 10),
    )
    return model, (torch.rand(1, 3, 32, 32),)


def mobilenet_v2() -> tuple[Any, tuple[Any, ...]]:
    """Return MobileNetV2 1.0 for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return _image_model(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000)), 224)


def mobilevit_xs() -> tuple[Any, tuple[Any, ...]]:
    """Return MobileViT-XS for 1000 classes on (1, 3, 256, 256) images."""
    from transformers import MobileViTConfig, MobileViTForImageClassification

    config = MobileViTConfig(
        hidden_sizes=[96, 120, 144], neck_hidden_sizes=[16, 32, 48, 64, 80, 96, 384], num_labels=1000
    )
    return _image_model(MobileViTForImageClassification(config), 256)


def resnet18() -> tuple[Any, tuple[Any, ...]]:
    """Return ResNet-18 for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", num_labels=1000)
    return _image_model(ResNetForImageClassification(config), 224)


def bert_tiny() -> tuple[Any, tuple[Any, ...]]:
    """Return BERT-tiny (2 layers of 128) on 128 token ids; the output is the last hidden state."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)
    model = BertModel(config, add_pooling_layer=False)
    return _plain_output(model, "last_hidden_state"), (torch.randint(0, config.vocab_size, (1, 128)),)


def linear() -> tuple[Any, tuple[Any, ...]]:
    """Return one linear layer, (64, 256) -> (64, 256)."""
    import torch

    return torch.nn.Linear(256, 256), (torch.randn(64, 256),)


def conv() -> tuple[Any, tuple[Any, ...]]:
    """Return one 3x3 convolution, (1, 32, 32, 32) -> (1, 64, 32, 32)."""
    import torch

    return torch.nn.Conv2d(32, 64, 3, padding=1), (torch.randn(1, 32, 32, 32),)


def batch_matmul() -> tuple[Any, tuple[Any, ...]]:
    """Return one product of two inputs, (4, 64, 64) x (4, 64, 64)."""
    import torch

    class BatchMatmul(torch.nn.Module):  # type: ignore[misc]
        def forward(self, left: Any, right: Any) -> Any:
            return torch.bmm(left, right)

    return BatchMatmul(), (torch.randn(4, 64, 64), torch.randn(4, 64, 64))


MODELS: dict[str, Factory] = {
    factory.__name__: factory
    for factory in (toy_cnn, mobilenet_v2, mobilevit_xs, bert_tiny, resnet18, linear, conv, batch_matmul)
}


def _image_model(model: Any, pixels: int) -> tuple[Any, tuple[Any, ...]]:
    import torch

    images = torch.rand(1, 3, pixels, pixels)
    _normalize_activations(model, images)
    return _plain_output(model, "logits"), (images,)


def _plain_output(model: Any, field: str) -> Any:
    """Wrap a transformers model so that forward takes and returns one plain tensor."""
    import torch

    class PlainOutput(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any) -> Any:
            return getattr(self.model(features), field)

    return PlainOutput()


def _normalize_activations(model: Any, images: Any) -> None:
    """Set the weight of each batch norm to 1, and its variance to the power of two nearest to its input's variance.

    As transformers initializes them, batch norms shrink activations layer by layer to 1e-22 and to denormal numbers,
    which cannot be compared and which a trained model does not produce. A power of two is equal on every machine,
    despite rounding differences in the sums.
    """
    import torch

    def rescale(norm: Any, inputs: tuple[Any, ...]) -> None:
        norm.weight.fill_(1.0)
        norm.running_var.fill_(2.0 ** float(inputs[0].square().mean().log2().round()))

    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    hooks = [norm.register_forward_pre_hook(rescale) for norm in norms]
    with torch.no_grad():
        model.eval()(images)
    for hook in hooks:
        hook.remove()
