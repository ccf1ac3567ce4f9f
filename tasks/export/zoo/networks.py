"""Vision networks, and text and audio encoders, with random weights, which suffice to measure latency."""

from typing import Any

Example = tuple[Any, tuple[Any, ...]]
"""A module and its example inputs."""


def mobilenet_v2() -> Example:
    """Return MobileNetV2 1.0 (arXiv:1801.04381) for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return _image_model(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000)), 224)


def mobilevit_xs() -> Example:
    """Return MobileViT-XS (arXiv:2110.02178) for 1000 classes on (1, 3, 256, 256) images."""
    from transformers import MobileViTConfig, MobileViTForImageClassification

    config = MobileViTConfig(
        hidden_sizes=[96, 120, 144], neck_hidden_sizes=[16, 32, 48, 64, 80, 96, 384], num_labels=1000
    )
    return _image_model(MobileViTForImageClassification(config), 256)


def resnet18() -> Example:
    """Return ResNet-18 (arXiv:1512.03385) for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", num_labels=1000)
    return _image_model(ResNetForImageClassification(config), 224)


def vit_tiny() -> Example:
    """Return ViT-Ti/16 (arXiv:2012.12877; 12 layers of 192, 3 heads) for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000)
    return _image_model(ViTForImageClassification(config), 224)


def bert_tiny() -> Example:
    """Return BERT-tiny (arXiv:1908.08962; 2 layers of 128) on 128 token ids; the output is the last hidden state."""
    return _bert(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)


def bert_mini() -> Example:
    """Return BERT-mini (arXiv:1908.08962; 4 layers of 256) on 128 token ids; the output is the last hidden state."""
    return _bert(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)


def _bert(**sizes: int) -> Example:
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(**sizes)
    model = BertModel(config, add_pooling_layer=False)
    return _plain_output(model, "last_hidden_state"), (torch.randint(0, config.vocab_size, (1, 128)),)


def whisper_tiny_encoder() -> Example:
    """Return Whisper-tiny's encoder (arXiv:2212.04356; 4 layers of 384) for a (1, 80, 3000) mel spectrogram of 30 s."""
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    return _plain_output(WhisperEncoder(config), "last_hidden_state"), (torch.randn(1, 80, 3000),)


def segformer_b0() -> Example:
    """Return SegFormer-B0 (arXiv:2105.15203) for 150 classes, (1, 3, 256, 256) image -> (1, 150, 64, 64) logits."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return _image_model(SegformerForSemanticSegmentation(SegformerConfig(num_labels=150)), 256)


def espcn_x3() -> Example:
    """Return ESPCN (arXiv:1609.05158), convolutions and a pixel shuffle: luma (1, 1, 180, 320) -> (1, 1, 540, 960)."""
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(1, 64, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(64, 32, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(32, 9, 3, padding=1),
        nn.PixelShuffle(3),
    )
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            nn.init.xavier_normal_(layer.weight, nn.init.calculate_gain("tanh"))  # keeps the size of the activations
    return model, (torch.rand(1, 1, 180, 320),)


def edgetam_encoder() -> Example:
    """Return an image encoder like EdgeTAM's, RepViT-M1 and a feature pyramid, on (1, 3, 512, 512) images.

    The outputs are the inputs of its mask decoder: features of 32, 64 and 256 channels at 1/4, 1/8 and 1/16 of the
    image's size. EdgeTAM (arXiv:2501.07256; RepViT: arXiv:2307.09283) takes 1024 x 1024 pixels.
    """
    import torch
    from torch import nn

    widths, depths = (48, 96, 192, 384), (2, 2, 14, 2)
    stem = nn.Sequential(_conv_norm(3, 24, 3, stride=2), nn.GELU(), _conv_norm(24, 48, 3, stride=2))
    stages = [nn.Sequential(stem, *_repvit_blocks(48, depths[0]))]
    for before, width, depth in zip(widths, widths[1:], depths[1:], strict=False):
        # Between two stages: half the height and width.
        downsample = [
            _conv_norm(before, before, 3, groups=before),
            _channel_mixer(before),
            _conv_norm(before, before, 3, stride=2, groups=before),
            _conv_norm(before, width, 1),
            _channel_mixer(width),
        ]
        stages.append(nn.Sequential(*downsample, *_repvit_blocks(width, depth)))

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        """The stages of RepViT, at 1/4 to 1/32 of the image's size, below a feature pyramid of 256 channels."""

        def __init__(self) -> None:
            super().__init__()
            self.stages = nn.ModuleList(stages)
            self.laterals = nn.ModuleList(nn.Conv2d(width, 256, 1) for width in widths)
            # conv_s0 and conv_s1 of SAM 2
            self.narrow = nn.ModuleList([nn.Conv2d(256, 32, 1), nn.Conv2d(256, 64, 1)])

        def forward(self, image: Any) -> Any:
            features = []
            for stage, lateral in zip(self.stages, self.laterals, strict=True):
                image = stage(image)
                features.append(lateral(image))
            quarter, eighth, sixteenth, smallest = features
            above = nn.functional.interpolate(smallest, scale_factor=2.0, mode="nearest")
            return self.narrow[0](quarter), self.narrow[1](eighth), sixteenth + above

    model, images = Encoder(), torch.rand(1, 3, 512, 512)
    _rescale_batch_norms(model, images)
    return model, (images,)


def _conv_norm(channels: int, width: int, kernel: int, *, stride: int = 1, groups: int = 1) -> Any:
    """Return a convolution without bias, padded for an odd kernel, then a batch norm."""
    from torch import nn

    convolution = nn.Conv2d(channels, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width))


def _repvit_blocks(width: int, depth: int) -> list[Any]:
    """Return RepViT blocks as merged for inference: depthwise 3x3, in every other one squeeze-excite, mixer."""
    from torch import nn

    blocks = []
    for number in range(depth):
        excite = [_squeeze_excite(width)] if number % 2 == 0 else []
        blocks.append(nn.Sequential(_conv_norm(width, width, 3, groups=width), *excite, _channel_mixer(width)))
    return blocks


def _channel_mixer(width: int) -> Any:
    """Return x + project(gelu(expand(x))), 1x1 convolutions over twice the channels."""
    import torch
    from torch import nn

    class ChannelMixer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.expand, self.project = _conv_norm(width, 2 * width, 1), _conv_norm(2 * width, width, 1)

        def forward(self, features: Any) -> Any:
            return features + self.project(nn.functional.gelu(self.expand(features)))

    return ChannelMixer()


def _squeeze_excite(width: int) -> Any:
    """Return x * sigmoid(expand(relu(reduce(mean of x per channel)))), with a quarter of the channels between."""
    import torch
    from torch import nn

    class SqueezeExcite(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.reduce, self.expand = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

        def forward(self, features: Any) -> Any:
            squeezed = features.mean((2, 3), keepdim=True)
            return features * torch.sigmoid(self.expand(torch.relu(self.reduce(squeezed))))

    return SqueezeExcite()


def _image_model(model: Any, pixels: int) -> Example:
    """Return (model with rescaled batch norms that returns `logits`, a random image (1, 3, pixels, pixels))."""
    import torch

    images = torch.rand(1, 3, pixels, pixels)
    _rescale_batch_norms(model, images)
    return _plain_output(model, "logits"), (images,)


def _plain_output(model: Any, field: str) -> Any:
    """Wrap a transformers model so that it takes one tensor and returns the tensor `field` of its output."""
    import torch

    class PlainOutput(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any) -> Any:
            return getattr(self.model(features), field)

    return PlainOutput()


def _rescale_batch_norms(model: Any, images: Any) -> None:
    """Set each batch norm's weight to 1, and its variance to the power of two nearest to its input's mean square.

    With the initial values of transformers, batch norms shrink activations layer by layer to 1e-22 and to denormal
    numbers, which cannot be compared and which a trained model does not produce. A power of two is equal on every
    machine, despite rounding differences in the sums. The model is in evaluation mode afterwards.
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
