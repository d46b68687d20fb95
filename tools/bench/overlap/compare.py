"""How well two ranks hide communication behind computation: one `atoll bench --link` a row, beside what overlap gains there
at best and the processor time that communication takes.

Rows are rates of the link from 50 Mbit/s to 10 Gbit/s, and then widths of the model with the rates at which about 20, 30 and
55 % of a serial step is communication. Priorities of other programs count: run it on a quiet machine.

Usage: run [--rates RATE...] [--widths HIDDEN...] [--turns N] [--preset NAME] [--set TABLE.KEY=VALUE]...
"""
import argparse

from shared.atoll import Atoll
from shared.report import Report

# Tokens of a micro-batch, by rate: communication's share is the same for any number, and slow links need few tokens to
# end today.
CONTEXTS = {"50M": 64, "100M": 64, "300M": 128, "1G": 512, "3G": 512, "10G": 512}
SHARES = [0.20, 0.30, 0.55]
CONFIG = "configs/bench/strands_tp2.toml"
LAYERS, MICRO_BATCHES = 2, 4
LEAST_SECONDS, LEAST_TURNS, MOST_TURNS = 6, 5, 31
EXCHANGES_OF_LAYER = 8  # all-gathers and reduce-scatters, forward and backward
FLOAT_BYTES = 4


class Bench:
    def __init__(self, options):
        self._atoll = Atoll(options.preset)
        self._turns = options.turns
        self._sets = options.overrides

    def measure(self, rate, context, hidden=512):
        """Turns enough for LEAST_SECONDS of serial steps, unless a number was asked for: short steps are noisier."""
        turns = self._turns
        if turns is None:
            serial_seconds = self._probe(rate, context, hidden)["serial_median_seconds"]
            turns = min(max(LEAST_TURNS, round(LEAST_SECONDS / serial_seconds)), MOST_TURNS)
        return self._measure(rate, context, hidden, turns)

    def _probe(self, rate, context, hidden):
        return self._measure(rate, context, hidden, 1, 'island.schedule="serial"')

    def _measure(self, rate, context, hidden, turns, *more_sets):
        heads, ffn = hidden // 64, hidden * 43 // 16
        sets = [f"model.layers={LAYERS}", f"train.sequences_per_step={MICRO_BATCHES}", f"model.context={context}",
                f"model.hidden={hidden}", f"model.heads={heads}", f"model.ffn={ffn}", *self._sets, *more_sets]
        # 1: also where interleaving is not worth it, which is a row like others.
        return self._atoll.json("bench", CONFIG, "--link", rate, "--turns", turns,
                                *(part for override in sets for part in ("--set", override)), expected=(0, 1))

    def rate_for(self, share, hidden, context):
        """The link on which this share of what a rank computes and communicates is communication."""
        compute = self._probe("10G", context, hidden)["compute_seconds"]
        payload = MICRO_BATCHES * LAYERS * EXCHANGES_OF_LAYER * context * hidden / 2 * FLOAT_BYTES
        return f"{payload * 8 * (1 - share) / share / compute / 1e6:.0f}M"


HEADER = ["link", "serial", "event", "comm", "waiting", "hidden", "overlap", "speedup", "barrier", "predicted", "event/pred.",
          "serial/profile", "event/profile", "attainable", "bound", "CPU/comm"]


def row(name, figures):
    serial, event = figures["serial_median_seconds"], figures["event_median_seconds"]
    return [name, f"{serial:.3f}", f"{event:.3f}", f"{figures['comm_share']:.2f}",
            f"{figures['waiting_seconds'] / serial:.2f}", f"{figures['hidden_share']:.2f}",
            f"{figures['overlap_effectiveness']:.2f}", f"{figures['speedup']:.2f}",
            f"{figures['barrier_speedup']:.2f}", f"{figures['predicted_speedup']:.2f}",
            f"{event / figures['event_predicted_seconds']:.3f}",
            f"{serial / figures['serial_profile_predicted_seconds']:.3f}",
            f"{event / figures['event_profile_predicted_seconds']:.3f}",
            f"{figures['attainable']:.2f}", f"{figures['bound']:.2f}",
            f"{figures['event_link_cpu_seconds'] / figures['comm_seconds']:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="*", default=list(CONTEXTS))
    parser.add_argument("--widths", nargs="*", type=int, default=[256, 1024])
    parser.add_argument("--turns", type=int)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = parser.parse_args()
    bench = Bench(options)
    results = {rate: bench.measure(rate, CONTEXTS.get(rate, 512)) for rate in options.rates}
    for hidden in options.widths:
        context = 512 if hidden <= 512 else 256
        for share in SHARES:
            rate = bench.rate_for(share, hidden, context)
            results[f"{rate}, hidden {hidden}"] = bench.measure(rate, context, hidden=hidden)
    report = Report("overlap: seconds of a step, shares of a serial one, speedups over it, measured over predicted steps")
    report.table(HEADER, [row(name, figures) for name, figures in results.items()])
    for name, figures in results.items():
        if figures["not_interleaved"]:
            print(f"  {name}: not interleaved: {figures['not_interleaved']}")
        report.equal(f"{name}: gradients equal to the bit", figures["gradients_bit_equal"], True)
        report.at_least(f"{name}: share of the attainable speedup", figures["speedup"] / figures["attainable"], 0.9)
        report.at_most(f"{name}: bytes of strands over those allowed",
                       figures["peak_bytes_interleaved"] / figures["peak_bytes_allowed"], 1, form="{:.4g}")
        for mode in ("barrier", "event"):
            off = figures[f"{mode}_median_seconds"] / figures[f"{mode}_predicted_seconds"] - 1
            report.at_most(f"{name}: {mode} step off its prediction", abs(off), 0.1)
    Report.finish_all([report])


if __name__ == "__main__":
    main()
