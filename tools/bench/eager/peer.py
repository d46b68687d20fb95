"""One peer of the speed comparison: trains on fresh random tokens and prints one JSON object.

A step = forward, loss, backward, gradient clipping, AdamW, in fp32. peer.py KIND STEPS SHAPE-JSON, KIND one of
eager (shared/llama.py), transformers (Hugging Face's LlamaForCausalLM), compiled (eager through torch.compile).
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from shared.llama import Llama
from shared.machine import matmul_peak_flops_per_second, peak_rss_bytes
from shared.shape import LlamaShape

UNTIMED_STEPS = 2  # the first allocates the optimizer's state, and compiles


def build(kind, shape):
    if kind == "transformers":
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(
            vocab_size=shape.vocab, hidden_size=shape.hidden, intermediate_size=shape.ffn, num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads, max_position_embeddings=shape.context,
            rms_norm_eps=shape.norm_epsilon, tie_word_embeddings=shape.tied, use_cache=False, attn_implementation="sdpa",
        )
        model = LlamaForCausalLM(config).float()
        return model, lambda tokens: model(input_ids=tokens).logits
    model = Llama(shape)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0.0, 0.02)
    return model, torch.compile(model) if kind == "compiled" else model


def main():
    kind, steps, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    at_start = peak_rss_bytes()
    shape = LlamaShape.from_config(settings["model"])
    sequences = settings["train"]["sequences_per_step"]
    model, logits_of = build(kind, shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    seconds, peaks = [], [matmul_peak_flops_per_second()]
    for step in range(UNTIMED_STEPS + steps):
        tokens = torch.randint(shape.vocab, (sequences, shape.context + 1))
        started = time.perf_counter()
        logits = logits_of(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, shape.vocab), tokens[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= UNTIMED_STEPS:
            seconds.append(time.perf_counter() - started)
        del logits, loss
    memory = peak_rss_bytes() - at_start
    peaks.append(matmul_peak_flops_per_second())
    json.dump({"step_seconds": seconds, "tokens_per_step": sequences * shape.context, "memory_bytes": memory,
               "matmul_peak_flops_per_second": statistics.median(peaks)}, sys.stdout)


if __name__ == "__main__":
    main()
