#!/usr/bin/env python3
"""Makes the fixtures tests/golden/hf_*/: tiny models with random weights as `transformers` writes them, a token
file, and the losses that `transformers` computes. Deterministic for one set of versions.

    python3 -m venv /tmp/fixtures && . /tmp/fixtures/bin/activate
    pip install torch==2.11.0 transformers==5.24.0 safetensors==0.8.0 numpy
    tools/make_fixtures.py [--out tests/golden]

Much less than torch's own dependencies is enough on a machine without GPU: pip install --no-deps torch, then
sympy networkx jinja2 typing_extensions filelock fsspec nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85.

Each fixture holds
  config.json, *.safetensors   the model (hf_llama_tied in several shards with an index)
  tokens.bin                   the token file of `atoll prepare`: 256 int32 header, then uint16 tokens
  losses.json                  {"context", "tokens", "loss": mean over all next tokens in consecutive windows of the
                               context, in nats, computed in fp64; "loss_f32": the same in fp32;
                               "token_losses": of each next token, fp64}
"""

import argparse
import json
import pathlib

import numpy
import torch
import transformers

TOKENS = 150  # six windows and a short one: the last window has fewer tokens than the context


def llama(**options):
    config = transformers.LlamaConfig(
        vocab_size=80,
        num_hidden_layers=2,
        max_position_embeddings=24,
        attn_implementation="eager",
        initializer_range=0.2,
        **options,
    )
    return transformers.LlamaForCausalLM(config)


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=80,
        n_positions=24,
        n_embd=24,
        n_layer=2,
        n_head=3,
        attn_implementation="eager",
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=0,
    )
    return transformers.GPT2LMHeadModel(config)


FIXTURES = {
    "hf_llama_gqa": lambda: llama(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=56,
        rms_norm_eps=1e-6,
        rope_theta=10000.0,
        tie_word_embeddings=False,
    ),
    "hf_llama_tied": lambda: llama(
        hidden_size=16,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=40,
        rms_norm_eps=1e-5,
        rope_theta=50000.0,
        tie_word_embeddings=True,
    ),
    "hf_gpt2": gpt2,
}


def randomize(model):
    """Norms that are not 1 and biases that are not 0, so that no tensor can be mixed up unseen."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))


def token_losses(model, tokens, context):
    losses = []
    for begin in range(0, len(tokens) - 1, context):
        window = torch.tensor([tokens[begin : begin + context + 1]])
        with torch.no_grad():
            logits = model(input_ids=window[:, :-1], use_cache=False).logits[0]
        losses.append(torch.nn.functional.cross_entropy(logits.double(), window[0, 1:], reduction="none"))
    return torch.cat(losses)


def write_tokens(path, tokens):
    header = numpy.zeros(256, dtype="<i4")
    header[:3] = 20240520, 1, len(tokens)
    path.write_bytes(header.tobytes() + numpy.array(tokens, dtype="<u2").tobytes())


def make(name, directory):
    torch.manual_seed(sum(name.encode()))
    model = FIXTURES[name]().eval()
    randomize(model)
    directory.mkdir(parents=True, exist_ok=True)
    shards = {"max_shard_size": "10KB"} if name == "hf_llama_tied" else {}
    model.save_pretrained(directory, **shards)
    (directory / "generation_config.json").unlink(missing_ok=True)

    context = model.config.max_position_embeddings
    tokens = torch.randint(1, model.config.vocab_size, (TOKENS,)).tolist()
    write_tokens(directory / "tokens.bin", tokens)
    loss_f32 = token_losses(model, tokens, context)
    loss_f64 = token_losses(model.double(), tokens, context)
    losses = {
        "context": context,
        "tokens": len(loss_f64),
        "loss": loss_f64.mean().item(),
        "loss_f32": loss_f32.mean().item(),
        "token_losses": [round(loss, 9) for loss in loss_f64.tolist()],
    }
    (directory / "losses.json").write_text(json.dumps(losses, indent=1) + "\n")
    for file in directory.iterdir():
        file.chmod(0o644)
    size = sum(file.stat().st_size for file in directory.iterdir())
    print(f"{directory}: loss {losses['loss']:.6f}, {size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    arguments = parser.parse_args()
    for name in FIXTURES:
        make(name, arguments.out / name)


if __name__ == "__main__":
    main()
