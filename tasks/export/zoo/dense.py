"""Networks whose output is a picture: segmentation, super-resolution, the image encoder of promptable segmentation."""

from typing import Any

from tasks.export.zoo.shared import Made, image_model, normalize_activations


def segformer_b0() -> Made:
    """Return SegFormer-B0 (arXiv:2105.15203) for 150 classes, (1, 3, 256, 256) image -> (1, 150, 64, 64) logits."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return image_model(SegformerForSemanticSegmentation(SegformerConfig(num_labels=150)), 256)


def espcn_x3() -> Made:
    """Return ESPCN (arXiv:1609.05158), convolutions and a pixel shuffle by 3.

    It makes (1, 1, 540, 960) of (1, 1, 180, 320) brightness.
    """
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


def edgetam_encoder() -> Made:
    """Return an image encoder like EdgeTAM's, RepViT-M1 and a feature pyramid, on (1, 3, 512, 512) images.

    The outputs are those that its mask decoder takes: features of 32, 64 and 256 channels at 1/4, 1/8 and 1/16 of the
    image's size. EdgeTAM itself (arXiv:2501.07256; RepViT: arXiv:2307.09283) takes 1024 x 1024 pixels.
    """
    import torch

    model = _edgetam_encoder(widths=(48, 96, 192, 384), depths=(2, 2, 14, 2))
    images = torch.rand(1, 3, 512, 512)
    normalize_activations(model, images)
    return model, (images,)


def _edgetam_encoder(widths: tuple[int, ...], depths: tuple[int, ...]) -> Any:
    """Return the stages of RepViT, at 1/4 to 1/32 of the image's size, below a feature pyramid of 256 channels."""
    import torch
    from torch import nn

    first = widths[0]
    stem = nn.Sequential(_conv_norm(3, first // 2, 3, stride=2), nn.GELU(), _conv_norm(first // 2, first, 3, stride=2))
    stages = [nn.Sequential(stem, *_repvit_blocks(first, depths[0]))]
    for before, width, depth in zip(widths, widths[1:], depths[1:], strict=False):
        stages.append(nn.Sequential(*_downsample(before, width), *_repvit_blocks(width, depth)))

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stages = nn.ModuleList(stages)
            self.laterals = nn.ModuleList(nn.Conv2d(width, 256, 1) for width in widths)
            self.narrow = nn.ModuleList([nn.Conv2d(256, 32, 1), nn.Conv2d(256, 64, 1)])

        def forward(self, image: Any) -> Any:
            features = []
            for stage, lateral in zip(self.stages, self.laterals, strict=True):
                image = stage(image)
                features.append(lateral(image))
            quarter, eighth, sixteenth, smallest = features
            above = nn.functional.interpolate(smallest, scale_factor=2.0, mode="nearest")
            return self.narrow[0](quarter), self.narrow[1](eighth), sixteenth + above

    return Encoder()


def _conv_norm(channels: int, width: int, kernel: int, *, stride: int = 1, groups: int = 1) -> Any:
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


def _downsample(before: int, width: int) -> list[Any]:
    """Return the layers between two stages: half the height and width, `before` -> `width` channels."""
    return [
        _conv_norm(before, before, 3, groups=before),
        _channel_mixer(before),
        _conv_norm(before, before, 3, stride=2, groups=before),
        _conv_norm(before, width, 1),
        _channel_mixer(width),
    ]


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
