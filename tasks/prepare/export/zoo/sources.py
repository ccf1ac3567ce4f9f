"""Where each architecture of the zoo comes from, and the licence of the code that builds it here.

No weights are downloaded: a model of the zoo has the published layers and sizes, and random weights.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """The origin of one architecture: its publication, and the code that builds it with that code's licence."""

    publication: str
    code: str = "this project"
    licence: str = "the project's own"


def _transformers(publication: str) -> Source:
    return Source(publication, "transformers", "Apache-2.0")


SOURCES: dict[str, Source] = {
    "toy_cnn": Source("none: a few layers to test with"),
    "linear": Source("none: one operator"),
    "conv": Source("none: one operator"),
    "batch_matmul": Source("none: one operator"),
    "gemm": Source("none: one operator in the sizes of other models"),
    "mobilenet_v2": _transformers("Sandler et al. 2018, MobileNetV2, arXiv:1801.04381"),
    "mobilevit_xs": _transformers("Mehta and Rastegari 2021, MobileViT, arXiv:2110.02178"),
    "resnet18": _transformers("He et al. 2015, Deep Residual Learning for Image Recognition, arXiv:1512.03385"),
    "vit_tiny": _transformers("Dosovitskiy et al. 2020, ViT, arXiv:2010.11929; the tiny size: arXiv:2012.12877"),
    "bert_tiny": _transformers("Devlin et al. 2018, BERT, arXiv:1810.04805; the small sizes: arXiv:1908.08962"),
    "bert_mini": _transformers("Devlin et al. 2018, BERT, arXiv:1810.04805; the small sizes: arXiv:1908.08962"),
    "whisper_tiny_encoder": _transformers("Radford et al. 2022, Whisper, arXiv:2212.04356"),
    "decoder_tiny": Source("the blocks of Touvron et al. 2023, LLaMA, arXiv:2302.13971, in a small size"),
    "decoder_small": Source("the blocks of Touvron et al. 2023, LLaMA, arXiv:2302.13971, in a small size"),
    "segformer_b0": _transformers("Xie et al. 2021, SegFormer, arXiv:2105.15203"),
    "espcn_x3": Source("Shi et al. 2016, ESPCN, arXiv:1609.05158"),
    "edgetam_encoder": Source("Zhou et al. 2025, EdgeTAM, arXiv:2501.07256; RepViT: arXiv:2307.09283"),
}
