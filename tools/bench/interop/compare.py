"""Checkpoints to and from Hugging Face: the same model must have the same loss on both sides, within 1e-5.

Into Atoll: `transformers` writes models with random weights (Llama with grouped queries, with separate and with tied
embeddings, and GPT-2), `atoll import` reads them, `atoll eval` measures. Out of Atoll: a trained model goes through
`atoll export` and `transformers` measures.
"""
import argparse
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from shared.atoll import Atoll
from shared.report import Report
from shared.shards import read_shard, write_shard

CONTEXT = 64
VOCAB = 272  # above the byte tokenizer's 257
RELATIVE_TOLERANCE = 1e-5
INITIAL_DEVIATION = 0.2  # large, so that losses depend on every weight

LLAMA = {
    "vocab_size": VOCAB, "hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "initializer_range": INITIAL_DEVIATION,
    "rms_norm_eps": 1e-5,
}
GPT2 = {
    "vocab_size": VOCAB, "n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": CONTEXT,
    "initializer_range": INITIAL_DEVIATION,
}
MODELS = {
    "llama, grouped queries": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA, tie_word_embeddings=False)),
    "llama, tied embeddings": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA, tie_word_embeddings=True)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**GPT2)),
}

TRAINING = {
    "llama": 'kind = "llama"\nlayers = 2\nhidden = 96\nheads = 6\nkv_heads = 2\nffn = 160\ntied = false',
    "llama, tied": 'kind = "llama"\nlayers = 2\nhidden = 96\nheads = 6\nkv_heads = 2\nffn = 160\ntied = true',
    "gpt2": 'kind = "gpt2"\nlayers = 2\nhidden = 96\nheads = 6',
}


def loss_of(model, tokens):
    """Mean over all next tokens in consecutive windows of CONTEXT tokens, in fp32 as Atoll computes."""
    total = 0.0
    with torch.no_grad():
        for begin in range(0, len(tokens) - 1, CONTEXT):
            inputs = torch.from_numpy(tokens[begin : begin + CONTEXT])
            targets = torch.from_numpy(tokens[begin + 1 : begin + CONTEXT + 1])
            logits = model(input_ids=inputs[None, : len(targets)]).logits[0]
            total += F.cross_entropy(logits.double(), targets, reduction="sum").item()
    return total / (len(tokens) - 1)


def compare_losses(report, name, ours, theirs):
    difference = abs(ours - theirs) / theirs
    report.bound(f"{name}: {ours:.7f} here, {theirs:.7f} there", f"{difference:.1e} apart",
                 difference <= RELATIVE_TOLERANCE, f"at most {RELATIVE_TOLERANCE:.0e}, relative")


def check_import(atoll, report, folder, data):
    for name, build in MODELS.items():
        torch.manual_seed(7)
        model = build().eval()
        if name.startswith("gpt2"):  # biases and norms are trained values too, and start at constants
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.data += 0.1 * torch.randn_like(parameter)
        there, here = folder / "hugging_face" / name.replace(", ", "_").replace(" ", "_"), folder / "imported" / name
        model.save_pretrained(there)
        atoll("import", there, "--out", here)
        compare_losses(report, name, atoll.json("eval", here, "--data", data)["loss"], loss_of(model, read_shard(data)))


def check_export(atoll, report, folder, data):
    for name, model_table in TRAINING.items():
        config = folder / f"{name}.toml"
        config.write_text(
            f'[run]\nname = "interop"\n[model]\n{model_table}\nvocab = {VOCAB}\ncontext = {CONTEXT}\n'
            f'[data]\ntrain = ["{data}"]\n[train]\nsteps = 20\nsequences_per_step = 8\nmicro_batch = 8\n'
            '[optim]\nlr = 3e-3\n[island]\nthreads = 1\n[[site]]\nname = "one"\n')
        run, there = folder / "runs" / name, folder / "exported" / name
        atoll("run", config, "--run-dir", run)
        checkpoint = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.removeprefix("step_")))
        atoll("export", checkpoint, "--out", there)
        model = AutoModelForCausalLM.from_pretrained(there, dtype=torch.float32).eval()
        compare_losses(report, f"{name}, trained", atoll.json("eval", checkpoint, "--data", data)["loss"],
                       loss_of(model, read_shard(data)))


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/interop/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    atoll = Atoll(options.preset)
    with tempfile.TemporaryDirectory(prefix="atoll-interop-") as directory:
        folder = pathlib.Path(directory)
        data = folder / "tokens.bin"
        # One document: a plain model knows no boundaries. Skewed, so that training has something to find.
        generator = np.random.default_rng(3)
        write_shard(data, np.minimum(generator.exponential(40.0, 40 * CONTEXT + 17).astype(np.int64), 255))
        into = Report("import: a model that transformers wrote")
        check_import(atoll, into, folder, data)
        out_of = Report("export: a model that Atoll trained")
        check_export(atoll, out_of, folder, data)
    Report.finish_all([into, out_of])


if __name__ == "__main__":
    main()
