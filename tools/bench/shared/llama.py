"""A Llama in plain PyTorch eager, with PyTorch's own fused ops: the peer of the speed comparison and the model of the
DiLoCo reference. Its parameters have the names of Hugging Face's LlamaForCausalLM, so exported checkpoints load.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        width = shape.head_width
        self.q_proj = nn.Linear(shape.hidden, shape.heads * width, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.kv_heads * width, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.kv_heads * width, bias=False)
        self.o_proj = nn.Linear(shape.heads * width, shape.hidden, bias=False)

    def forward(self, x, rotation, mask):
        batch, tokens, _ = x.shape

        def heads_of(projection):
            return projection(x).view(batch, tokens, -1, self.shape.head_width).transpose(1, 2)

        query, key = rotate(heads_of(self.q_proj), rotation), rotate(heads_of(self.k_proj), rotation)
        value = heads_of(self.v_proj)
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None,
            enable_gqa=self.shape.heads != self.shape.kv_heads,
        )
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.down_proj = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Norm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape.hidden))
        self.epsilon = shape.norm_epsilon

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.input_layernorm = Norm(shape)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape)
        self.mlp = FeedForward(shape)

    def forward(self, x, rotation, mask):
        x = x + self.self_attn(self.input_layernorm(x), rotation, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape)


class Llama(nn.Module):
    """Tokens [batch, tokens] → logits [batch, tokens, vocab].

    positions [batch, tokens] and mask [batch, 1, tokens, tokens] (True = may look) are for packed documents; without
    them every row is one document.
    """

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.model = Decoder(shape)
        self.lm_head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        if shape.tied:
            self.lm_head.weight = self.model.embed_tokens.weight
        half = torch.arange(0, shape.head_width, 2, dtype=torch.float64) / shape.head_width
        angles = torch.outer(torch.arange(shape.context, dtype=torch.float64), shape.rope_theta**-half)
        self.register_buffer("cosines", torch.cat((angles, angles), -1).cos().float(), persistent=False)
        self.register_buffer("sines", torch.cat((angles, angles), -1).sin().float(), persistent=False)

    def forward(self, tokens, positions=None, mask=None):
        if positions is None:
            rotation = self.cosines[: tokens.shape[1]], self.sines[: tokens.shape[1]]
        else:
            rotation = self.cosines[positions].unsqueeze(1), self.sines[positions].unsqueeze(1)
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, rotation, mask)
        return self.lm_head(self.model.norm(x))


def rotate(x, rotation):
    cosines, sines = rotation
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat((-second, first), -1) * sines
