"""Atoll's outer loop beside a PyTorch reference of DiLoCo that starts from the same parameters and reads the batches
that Atoll's sites trained on.

Bounds: every site's loss agrees step by step for 3 rounds, within what fp32 rounding does (the reference run against
itself with its sequences summed in the opposite order says how much that is); the held-out loss after all rounds
agrees within 0.5 %. The distance to synchronous data parallelism at equal tokens is stated for fp32 and int8
exchanges, and has no bound: it is a property of the method.
"""
import argparse
import glob
import json
import pathlib
import tempfile
import time

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from diloco.reference import DiLoCo, held_out_loss, synchronous
from shared.atoll import SOURCE, Atoll
from shared.batches import read_batches
from shared.llama import Llama
from shared.report import Report
from shared.shape import LlamaShape
from shared.shards import read_shard

INNER_STEPS = 30
COMPARED_ROUNDS = 3
NOISE_FACTOR = 20  # between two ways of rounding and two programs that round everywhere differently
HELD_OUT_TOLERANCE = 0.005
HELD_OUT_WINDOWS = 400

CONFIG = """\
[run]
name = "diloco"
[model]
kind = "llama"
layers = 4
hidden = 128
heads = 4
ffn = 352
vocab = 257
context = 128
init = "{init}"
[data]
train = ["{data}/train_*.bin"]
validation = ["{data}/validation_*.bin"]
[train]
steps = {steps}
sequences_per_step = 4
micro_batch = 4
[optim]
lr = 2e-3
warmup_steps = 30
schedule = "cosine"
[outer]
method = "diloco"
inner_steps = 30
momentum = 0.9
warmup_rounds = 0
[exchange]
codec = "{codec}"
[island]
threads = 1
[monitor]
log_interval = 1
eval_interval = 0
"""


def initial_checkpoint(atoll, folder):
    """Random parameters that both sides start from."""
    torch.manual_seed(11)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=257, hidden_size=128, intermediate_size=352, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=128, initializer_range=0.02, rms_norm_eps=1e-5,
        tie_word_embeddings=False))
    model.save_pretrained(folder / "initial_hugging_face")
    atoll("import", folder / "initial_hugging_face", "--out", folder / "initial")
    return model.state_dict()


class Run:
    """One run of Atoll: per-site losses and batches, and the model it ends with."""

    def __init__(self, atoll, folder, options, sites, codec):
        name = f"{sites}_{codec}"
        self.directory, config = folder / name, folder / f"{name}.toml"
        self.names = [f"site{index}" for index in range(sites)]
        text = CONFIG.format(init=folder / "initial", data=options.data, codec=codec,
                             steps=options.rounds * INNER_STEPS)
        config.write_text(text + "".join(f'[[site]]\nname = "{site}"\n' for site in self.names))
        self.config = atoll.resolved_config(config)
        atoll("run", config, "--run-dir", self.directory, "--dump-batches", self.directory / "batches")
        exported = self.directory / "exported"
        atoll("export", self.directory / "checkpoints" / f"step_{options.rounds * INNER_STEPS}", "--out", exported)
        self.model = Llama(LlamaShape.from_config(self.config["model"]))
        self.model.load_state_dict(AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32).state_dict())

    def losses(self, site):
        lines = [json.loads(line) for line in (self.directory / "metrics" / f"{site}.jsonl").open()]
        return [line["train_loss"] for line in lines if "train_loss" in line]

    def batches(self, reverse=False):
        by_site = []
        for site in self.names:
            steps = {}
            for batch in read_batches(self.directory / "batches" / f"{site}.bin"):
                steps.setdefault(batch.step, []).append(batch.reversed() if reverse else batch)
            by_site.append(steps)
        return by_site


def largest_difference(ours, theirs):
    return max(abs(one - other) for one, other in zip(ours, theirs, strict=True))


def compare(atoll, folder, options, initial_state, sites, held_out):
    started = time.monotonic()
    run = Run(atoll, folder, options, sites, "identity")
    int8 = Run(atoll, folder, options, sites, "int8")
    initial = Llama(LlamaShape.from_config(run.config["model"]))
    initial.load_state_dict(initial_state)
    outer_lr = run.config["outer"]["lr"]
    reference = DiLoCo(initial, run.config, run.batches(), outer_lr)
    other_order = DiLoCo(initial, run.config, run.batches(reverse=True), outer_lr)
    for number in range(options.rounds):
        reference.round(number)
        if number < COMPARED_ROUNDS:
            other_order.round(number)
    together = synchronous(initial, run.config, run.batches())

    tokens = sites * options.rounds * INNER_STEPS * 4 * 128
    report = Report(f"{sites} sites, {options.rounds} rounds of {INNER_STEPS} steps, {tokens:,} tokens, outer lr {outer_lr}")
    compared = COMPARED_ROUNDS * INNER_STEPS
    for index, site in enumerate(run.names):
        noise = largest_difference(reference.losses[index][:compared], other_order.losses[index][:compared])
        difference = largest_difference(run.losses(site)[:compared], reference.losses[index][:compared])
        report.bound(f"{site}: largest difference of loss in {compared} steps", f"{difference:.1e}",
                     difference <= NOISE_FACTOR * noise, f"at most {NOISE_FACTOR} x the rounding noise {noise:.1e}")

    losses = {name: held_out_loss(model, held_out, 256, HELD_OUT_WINDOWS) for name, model in (
        ("initial", initial), ("Atoll, fp32", run.model), ("Atoll, int8", int8.model),
        ("reference of DiLoCo", reference.outer), ("synchronous", together))}
    report.table(("held-out loss, nats per token", "", "to synchronous"), [
        (name, f"{loss:.4f}", f"{100 * (loss / losses['synchronous'] - 1):+.2f} %") for name, loss in losses.items()])
    difference = abs(losses["Atoll, fp32"] / losses["reference of DiLoCo"] - 1)
    report.at_most("held-out loss against the reference, %", 100 * difference, 100 * HELD_OUT_TOLERANCE)
    print(f"  {time.monotonic() - started:.0f} s")
    return report


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/diloco/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--data", type=pathlib.Path, default=SOURCE / "data/linux-doc",
                        help="token shards of the byte tokenizer, as tools/quickstart makes them")
    parser.add_argument("--sites", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    shards = sorted(glob.glob(f"{options.data}/validation_*.bin"))
    if not shards:
        parser.error(f"no validation_*.bin in {options.data}: run tools/quickstart first, or give --data")
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    atoll = Atoll(options.preset)
    held_out = np.concatenate([read_shard(shard) for shard in shards])
    with tempfile.TemporaryDirectory(prefix="atoll-diloco-") as directory:
        folder = pathlib.Path(directory)
        initial_state = initial_checkpoint(atoll, folder)
        reports = [compare(atoll, folder, options, initial_state, sites, held_out) for sites in options.sites]
    Report.finish_all(reports)


if __name__ == "__main__":
    main()
