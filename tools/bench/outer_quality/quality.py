"""What the outer loop costs in quality: held-out loss of two sites after equal tokens, from scratch, beside synchronous
data parallelism, which is one site with both sites' sequences in each step.

A model of 0.87 million parameters, rounds of 30 steps, 614 thousand tokens (--steps makes it longer). Every row is the
mean over the same seeds. Bounds: the default ends within 5 % of synchronous, and no worse than without a warm-up of the
outer step beyond two standard errors of the paired difference; with --steps 6000 the second is the one to watch.
In 600 steps all 20 rounds are warm-up: there the default is averaging.
"""
import argparse
import json
import math
import pathlib
import statistics
import tempfile
import time

from shared.atoll import SOURCE, Atoll
from shared.report import Report

CONFIG = """\
[run]
name = "outer_quality"
seed = {seed}
[model]
kind = "llama"
layers = 4
hidden = 128
heads = 4
ffn = 352
vocab = 257
context = 128
[data]
train = ["{data}/train_*.bin"]
validation = ["{data}/validation_*.bin"]
[train]
steps = {steps}
sequences_per_step = {sequences}
[optim]
lr = 2e-3
warmup_steps = 30
schedule = "cosine"
[outer]
{outer}
[exchange]
codec = "identity"
[island]
threads = 1
[checkpoint]
interval = 0
[monitor]
log_interval = 100
eval_interval = 0
eval_windows = 2048
"""

# Name, sites, keys of [outer].
CASES = {
    "synchronous": (1, 'method = "average"'),
    "default": (2, "inner_steps = 30"),
    "no warm-up": (2, "inner_steps = 30\nwarmup_rounds = 0"),
    "averaging": (2, 'inner_steps = 30\nmethod = "average"'),
    "streaming": (2, "inner_steps = 30\nfragments = 2\noverlap_steps = 3"),
}
SEQUENCES = 8  # of all sites together, in each step


def held_out_loss(atoll, folder, options, case, seed):
    sites, outer = CASES[case]
    name = f"{case.replace(' ', '_').replace(',', '')}_{seed}"
    config = folder / f"{name}.toml"
    text = CONFIG.format(seed=seed, data=options.data, steps=options.steps, sequences=SEQUENCES // sites, outer=outer)
    config.write_text(text + "".join(f'[[site]]\nname = "site{index}"\n' for index in range(sites)))
    atoll("run", config, "--run-dir", folder / name)
    summary = json.loads((folder / name / "summary.json").read_text())
    return summary["val_loss"], summary["rounds"]


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/outer_quality/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--data", type=pathlib.Path, default=SOURCE / "data/linux-doc",
                        help="token shards of the byte tokenizer, as tools/quickstart makes them")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    options = parser.parse_args()
    if not list(options.data.glob("validation_*.bin")):
        parser.error(f"no validation_*.bin in {options.data}: run tools/quickstart first, or give --data")
    atoll = Atoll(options.preset)
    started = time.monotonic()
    losses, rounds = {}, {}
    with tempfile.TemporaryDirectory(prefix="atoll-outer-") as directory:
        for case in options.cases:
            results = [held_out_loss(atoll, pathlib.Path(directory), options, case, seed) for seed in options.seeds]
            losses[case], rounds[case] = [loss for loss, _ in results], results[0][1]
    tokens = options.steps * SEQUENCES * 128
    report = Report(f"2 sites, {options.steps} steps, {tokens:,} tokens, {len(options.seeds)} seeds, "
                    f"{time.monotonic() - started:.0f} s")
    mean = {case: statistics.mean(values) for case, values in losses.items()}
    base = mean.get("synchronous")
    report.table(("held-out loss, nats per token", "mean", "spread", "to synchronous", "rounds"), [
        (case, f"{mean[case]:.4f}", f"{max(values) - min(values):.4f}",
         f"{100 * (mean[case] / base - 1):+.2f} %" if base else "-", rounds[case])
        for case, values in losses.items()])
    if base and "default" in mean:
        report.at_most("the default behind synchronous, %", 100 * (mean["default"] / base - 1), 5)
    if "default" in mean and "no warm-up" in mean:
        worse = [one - other for one, other in zip(losses["default"], losses["no warm-up"])]
        report.at_most("the default behind no warm-up, nats", statistics.mean(worse), 2 * standard_error(worse),
                       "{:+.4f}")
    Report.finish_all([report])


if __name__ == "__main__":
    main()
