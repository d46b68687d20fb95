"""The shape of a Llama and what it computes; needs no torch."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class LlamaShape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    context: int
    tied: bool = False
    norm_epsilon: float = 1e-5
    rope_theta: float = 10000.0

    @staticmethod
    def from_config(model):
        """From the [model] table of a resolved Atoll config."""
        names = {field.name for field in dataclasses.fields(LlamaShape)}
        return LlamaShape(**{key: value for key, value in model.items() if key in names})

    @property
    def head_width(self):
        return self.hidden // self.heads

    def flops_per_token(self):
        """Forward and backward through weights and causal attention, 2 flops per multiply-add."""
        width = self.heads * self.head_width
        weights = self.layers * (2 * self.hidden * width + 2 * self.hidden * self.kv_heads * self.head_width
                                 + 3 * self.hidden * self.ffn) + self.hidden * self.vocab
        attention = self.layers * width * self.context  # half of two products: each token looks back only
        return 6 * (weights + attention)
