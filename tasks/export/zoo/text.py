"""Text encoders: architectures of transformers with random weights."""

from tasks.export.zoo.shared import Made, plain_output


def bert_tiny() -> Made:
    """Return BERT-tiny (arXiv:1908.08962; 2 layers of 128) on 128 token ids; the output is the last hidden state."""
    return _bert(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)


def bert_mini() -> Made:
    """Return BERT-mini (arXiv:1908.08962; 4 layers of 256) on 128 token ids; the output is the last hidden state."""
    return _bert(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)


def _bert(**sizes: int) -> Made:
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(**sizes)
    model = BertModel(config, add_pooling_layer=False)
    return plain_output(model, "last_hidden_state"), (torch.randint(0, config.vocab_size, (1, 128)),)
