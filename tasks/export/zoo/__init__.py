"""The models measured by default: short name -> factory; torch and transformers are imported inside the factories.

A factory has no parameters. The caller seeds torch first, so weights and inputs depend only on the seed; nothing is
downloaded.
"""

import sys
from pathlib import Path

from tasks.export.zoo import audio, decoder, dense, products, shared, single, text, vision
from tasks.export.zoo.shared import Factory

MODELS: dict[str, Factory] = {
    factory.__name__: factory
    for factory in (
        single.toy_cnn,
        vision.mobilenet_v2,
        vision.mobilevit_xs,
        text.bert_tiny,
        vision.resnet18,
        vision.vit_tiny,
        dense.segformer_b0,
        dense.espcn_x3,
        dense.edgetam_encoder,
        text.bert_mini,
        audio.whisper_tiny_encoder,
        decoder.decoder_tiny,
        decoder.decoder_small,
        decoder.llama_2l,
        decoder.qwen_2l,
        single.linear,
        single.conv,
        single.batch_matmul,
        products.gemm,
    )
}


def files_of(name: str) -> list[Path]:
    """Return the files that decide what the model `name` of the zoo is: its subject's, and what all subjects share."""
    modules = (sys.modules[MODELS[name].__module__], shared)
    return [Path(module.__file__) for module in modules if module.__file__]
