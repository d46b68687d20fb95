"""How well two ranks hide communication behind computation over links of 50 Mbit/s to 10 Gbit/s: one `atoll bench
--link` a rate, beside what overlap gains there at best and the processor time that communication takes.

Usage: run [RATE...] [--turns N] [--preset NAME] [--set TABLE.KEY=VALUE]...
"""
import argparse

from shared.atoll import Atoll
from shared.report import Report

# Tokens of a micro-batch, by rate: communication's share is the same for any number, and slow links need few tokens to
# end today.
CONTEXTS = {"50M": 64, "100M": 64, "300M": 128, "1G": 512, "3G": 512, "10G": 512}
CONFIG = "configs/bench/strands_tp2.toml"


def measure(atoll, rate, turns, overrides):
    sets = ["model.layers=2", "train.sequences_per_step=4", f"model.context={CONTEXTS.get(rate, 512)}", *overrides]
    return atoll.json("bench", CONFIG, "--link", rate, "--turns", turns,
                      *(part for override in sets for part in ("--set", override)))


def row(rate, figures):
    serial, event = figures["serial_median_seconds"], figures["event_median_seconds"]
    return [rate, f"{serial:.3f}", f"{event:.3f}", f"{figures['comm_share']:.2f}",
            f"{figures['overlap_effectiveness']:.2f}", f"{figures['speedup']:.2f}",
            f"{figures['barrier_speedup']:.2f}", f"{figures['predicted_speedup']:.2f}",
            f"{figures['attainable']:.2f}", f"{figures['bound']:.2f}",
            f"{figures['event_link_cpu_seconds'] / figures['comm_seconds']:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rates", nargs="*", default=list(CONTEXTS))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = parser.parse_args()
    atoll = Atoll(options.preset)
    results = {rate: measure(atoll, rate, options.turns, options.overrides) for rate in options.rates}
    report = Report("overlap: seconds of a step, share of communication in a serial one, speedups over it")
    report.table(["rate", "serial", "event", "comm", "overlap", "speedup", "barrier", "predicted", "attainable",
                  "bound", "CPU/comm"], [row(rate, figures) for rate, figures in results.items()])
    for rate, figures in results.items():
        report.equal(f"{rate}: gradients equal to the bit", figures["gradients_bit_equal"], True)
        report.at_least(f"{rate}: share of the attainable speedup",
                        figures["speedup"] / figures["attainable"], 0.9)
    Report.finish_all([report])


if __name__ == "__main__":
    main()
