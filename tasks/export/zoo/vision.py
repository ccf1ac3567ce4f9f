"""Image classification: architectures of transformers with random weights, which is sufficient for latency."""

from tasks.export.zoo.shared import Made, image_model


def mobilenet_v2() -> Made:
    """Return MobileNetV2 1.0 (arXiv:1801.04381) for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return image_model(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000)), 224)


def mobilevit_xs() -> Made:
    """Return MobileViT-XS (arXiv:2110.02178) for 1000 classes on (1, 3, 256, 256) images."""
    from transformers import MobileViTConfig, MobileViTForImageClassification

    config = MobileViTConfig(
        hidden_sizes=[96, 120, 144], neck_hidden_sizes=[16, 32, 48, 64, 80, 96, 384], num_labels=1000
    )
    return image_model(MobileViTForImageClassification(config), 256)


def resnet18() -> Made:
    """Return ResNet-18 (arXiv:1512.03385) for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", num_labels=1000)
    return image_model(ResNetForImageClassification(config), 224)


def vit_tiny() -> Made:
    """Return ViT-Ti/16 (arXiv:2012.12877; 12 layers of 192, 3 heads) for 1000 classes on (1, 3, 224, 224) images."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000)
    return image_model(ViTForImageClassification(config), 224)
