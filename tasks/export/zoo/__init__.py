"""The models measured by default: short name -> factory; torch and transformers are imported inside the factories.

A factory has no parameters. The caller seeds torch first, so weights and inputs depend only on the seed; nothing is
downloaded.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.export.zoo import decoder, networks, operators

MODELS: dict[str, Callable[[], Any]] = {
    factory.__name__: factory
    for factory in (
        operators.toy_cnn,
        networks.mobilenet_v2,
        networks.mobilevit_xs,
        networks.bert_tiny,
        networks.resnet18,
        networks.vit_tiny,
        networks.segformer_b0,
        networks.espcn_x3,
        networks.edgetam_encoder,
        networks.bert_mini,
        networks.whisper_tiny_encoder,
        decoder.decoder_tiny,
        decoder.decoder_small,
        decoder.llama_2l,
        decoder.qwen_2l,
        operators.linear,
        operators.conv,
        operators.batch_matmul,
        operators.gemm,
        operators.roof,
    )
}


def source_file(name: str) -> Path:
    return Path(str(sys.modules[MODELS[name].__module__].__file__))
