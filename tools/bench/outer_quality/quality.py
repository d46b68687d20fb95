"""What the outer loop costs in quality: held-out loss of two sites after equal tokens, from scratch, beside synchronous
data parallelism, which is one site with both sites' sequences in each step.

A model of 0.87 million parameters, rounds of 30 steps, 614 thousand tokens (--steps makes it longer). Results are kept
in a file: an invocation runs what the file has not, and prints the table of all that it has with so many steps.
Bounds, over the seeds that both sides have: the default ends within 5 % of synchronous, and no worse than without a
warm-up of the outer step beyond two standard errors of the paired difference; with --steps 6000 the second is the one
to watch. Dense codecs end within 0.5 % and two standard errors of fp32, which is the default.
"""
import argparse
import json
import math
import pathlib
import statistics
import tempfile
import time

from cases import CASES, CONTEXT, DENSE_CODECS, SEQUENCES
from results import Results
from shared.atoll import SOURCE, Atoll
from shared.report import Report

TABLES = ("outer", "exchange", "optim")  # that cases differ in


def measure(atoll, options, case, seed, results):
    """Runs one case with one seed and keeps its result, unless it is kept already."""
    with tempfile.TemporaryDirectory(prefix="atoll-outer-") as directory:
        folder = pathlib.Path(directory)
        config = folder / "run.toml"
        config.write_text(CASES[case].config(seed, options.steps, options.data))
        resolved = atoll.resolved_config(config)
        settings = {table: resolved[table] for table in TABLES}
        if results.find(case, seed, options.steps, settings):
            return
        started = time.monotonic()
        atoll("run", config, "--run-dir", folder / "run")
        summary = json.loads((folder / "run/summary.json").read_text())
        if summary["steps"] != options.steps:  # it was told to end, which is no failure
            raise RuntimeError(f"{case}, seed {seed}: the run ended at step {summary['steps']}")
        results.keep({"case": case, "seed": seed, "steps": options.steps, "settings": settings,
                      "held_out_loss": summary["val_loss"], "rounds": summary["rounds"],
                      "payload_bytes": summary["payload_bytes_sent"], "seconds": round(time.monotonic() - started)})


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


class Losses:
    """Held-out losses by case and seed, of all kept results with so many steps."""

    def __init__(self, results, steps):
        by_case = {case: results.of(case, steps) for case in CASES}
        self.results = {case: by_seed for case, by_seed in by_case.items() if by_seed}

    def mean(self, case):
        return statistics.mean(result["held_out_loss"] for result in self.results[case].values())

    def differences(self, case, base):
        """case − base, relative to base, of each seed that both have."""
        one, other = self.results.get(case, {}), self.results.get(base, {})
        return [one[seed]["held_out_loss"] / other[seed]["held_out_loss"] - 1 for seed in sorted(one.keys() & other.keys())]

    def row(self, case):
        results = self.results[case]
        losses = [result["held_out_loss"] for result in results.values()]
        behind = [f"{100 * statistics.mean(gaps):+.2f} %" if gaps else "-"
                  for gaps in (self.differences(case, "synchronous"), self.differences(case, "default"))]
        return (case, len(losses), f"{self.mean(case):.4f}", f"{max(losses) - min(losses):.4f}", *behind,
                f"{statistics.mean(result['payload_bytes'] for result in results.values()) / 1e6:.2f}")


def check_bounds(report, losses):
    behind = losses.differences("default", "synchronous")
    if behind:
        report.at_most("the default behind synchronous, %", 100 * statistics.mean(behind), 5)
    worse = losses.differences("default", "no warm-up")
    if len(worse) > 1:
        report.at_most("the default behind no warm-up, %", 100 * statistics.mean(worse),
                       200 * standard_error(worse), "{:+.2f}")
    for codec in DENSE_CODECS:
        gaps = losses.differences(codec, "default")
        if len(gaps) > 1:
            report.at_most(f"{codec} behind fp32, %", 100 * statistics.mean(gaps), 0.5 + 200 * standard_error(gaps),
                           "{:+.2f}")


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/outer_quality/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--data", type=pathlib.Path, default=SOURCE / "data/linux-doc",
                        help="token shards of the byte tokenizer, as tools/quickstart makes them")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES),
                        help="what to run; with nothing after it only the table is printed")
    parser.add_argument("--results", type=pathlib.Path, default=SOURCE / "runs/outer_quality.json",
                        help="the file that keeps them")
    options = parser.parse_args()
    if options.cases and not list(options.data.glob("validation_*.bin")):
        parser.error(f"no validation_*.bin in {options.data}: run tools/quickstart first, or give --data")
    atoll = Atoll(options.preset)
    results = Results(options.results)
    for seed in options.seeds:
        for case in options.cases:
            measure(atoll, options, case, seed, results)
    losses = Losses(results, options.steps)
    report = Report(f"2 sites, {options.steps} steps, {options.steps * SEQUENCES * CONTEXT:,} tokens")
    report.table(("held-out loss, nats per token", "seeds", "mean", "spread", "to synchronous", "to default", "MB sent"),
                 [losses.row(case) for case in losses.results])
    check_bounds(report, losses)
    Report.finish_all([report])


if __name__ == "__main__":
    main()
