"""The phoneme encoder: ALBERT, whose twelve layers share one set of weights."""

from __future__ import annotations

from typing import Final

from torch import Tensor, nn
from torch.nn import functional

from services.inference.kokoro_torch.valid import Valid

VOCABULARY: Final = 178
WIDTH: Final = 768

_EMBEDDED: Final = 128
_HEADS: Final = 12
_INNER: Final = 2048
_LAYERS: Final = 12
_POSITIONS: Final = 512
_EPSILON: Final = 1e-12


class _Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, _EMBEDDED)
        self.position_embeddings = nn.Embedding(_POSITIONS, _EMBEDDED)
        self.token_type_embeddings = nn.Embedding(2, _EMBEDDED)
        self.LayerNorm = nn.LayerNorm(_EMBEDDED, eps=_EPSILON)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, size), 512 long at most, to (batch, size, 128)."""
        places = self.position_embeddings.weight[: tokens.shape[1]]
        kind = self.token_type_embeddings.weight[0]
        return self.LayerNorm(self.word_embeddings(tokens) + places + kind)


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=_EPSILON)

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """x: (batch, size, 768), as is the result; seen: (batch, 1, 1, size), True where a token
        is real, None where all are."""

        def heads(layer: nn.Linear) -> Tensor:
            return layer(x).unflatten(-1, (_HEADS, -1)).transpose(1, 2)

        mixed = functional.scaled_dot_product_attention(
            heads(self.query), heads(self.key), heads(self.value), attn_mask=seen
        )
        return self.LayerNorm(x + self.dense(mixed.transpose(1, 2).flatten(2)))


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = _Attention()
        self.ffn = nn.Linear(WIDTH, _INNER)
        self.ffn_output = nn.Linear(_INNER, WIDTH)
        self.full_layer_layer_norm = nn.LayerNorm(WIDTH, eps=_EPSILON)

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        """Shapes as in attention: (batch, size, 768) to the same."""
        x = self.attention(x, seen)
        inner = functional.gelu(self.ffn(x), approximate="tanh")
        return self.full_layer_layer_norm(self.ffn_output(inner) + x)


class _Group(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.albert_layers = nn.ModuleList([_Layer()])


class _Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding_hidden_mapping_in = nn.Linear(_EMBEDDED, WIDTH)
        self.albert_layer_groups = nn.ModuleList([_Group()])


class Albert(nn.Module):
    """Tokens (batch, size) to (batch, size, 768); no token sees the padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = _Embeddings()
        self.encoder = _Encoder()

    def forward(self, tokens: Tensor, valid: Valid) -> Tensor:
        """Tokens (batch, size), numbers below VOCABULARY, to (batch, size, 768); what comes for
        the padding means nothing."""
        seen = None if valid.padding is None else ~valid.padding[:, None, None]
        x = self.encoder.embedding_hidden_mapping_in(self.embeddings(tokens))
        for _ in range(_LAYERS):
            x = self.encoder.albert_layer_groups[0].albert_layers[0](x, seen)
        return x
