"""Audio encoders: architectures of transformers with random weights."""

from tasks.export.zoo.shared import Made, plain_output


def whisper_tiny_encoder() -> Made:
    """Return the encoder of Whisper-tiny (arXiv:2212.04356; 4 layers of 384).

    Its input is the (1, 80, 3000) mel spectrogram of 30 s of sound.
    """
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    return plain_output(WhisperEncoder(config), "last_hidden_state"), (torch.randn(1, 80, 3000),)
