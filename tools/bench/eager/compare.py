"""Training speed beside PyTorch: tokens per second of `atoll bench` and of three peers in one interleaved run.

All use one thread, fp32, and the shapes of configs/bench. The machine's speed wanders, so the programs take turns
and only figures of one run are compared: medians, and the fastest step beside them.

Bounds: S1 and S2 at 1.25 times eager's tokens per second or more, S3 at 1.15 times, or 88 % of the matmul peak
measured in the same process; and less memory above the start of the process than eager.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from shared.atoll import SOURCE, Atoll, one_thread
from shared.report import Report
from shared.shape import LlamaShape

PEERS = ("eager", "transformers", "compiled")
SPEEDUP = {"s1": 1.25, "s2": 1.25, "s3": 1.15}
SHARE_OF_PEAK = 0.88
STEPS = {"s1": 12, "s2": 4, "s3": 2}  # per turn


def run_json(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, env=one_thread(), cwd=SOURCE)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} exited with {result.returncode}")
    return json.loads(result.stdout)


def worker_start_bytes(atoll):
    """What the worker holds before it does anything: its libraries. A process counts the peak of the one that started
    it as its own, which is why nothing large is imported here."""
    process = subprocess.Popen([str(atoll.binaries / "atoll-worker"), "--help"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


def run_atoll(atoll, config, steps, start_bytes):
    result = run_json(atoll.command("bench", config, "--steps", steps, "--threads", 1, "--json"))
    return result | {"memory_bytes": result["peak_rss_bytes"] - start_bytes}


def run_peer(kind, steps, settings):
    script = str(SOURCE / "tools/bench/eager/peer.py")
    return run_json([sys.executable, script, kind, str(steps), json.dumps(settings)])


def summarise(name, results):
    seconds = [value for result in results for value in result["step_seconds"]]
    tokens = results[0]["tokens_per_step"]
    return {
        "name": name,
        "median": tokens / statistics.median(seconds),
        "best": tokens / min(seconds),
        "peak": statistics.median(result["matmul_peak_flops_per_second"] for result in results),
        "memory": max(result["memory_bytes"] for result in results),
    }


def compare(shape_name, atoll, turns, peers):
    config = f"configs/bench/{shape_name}.toml"
    settings = atoll.resolved_config(config)
    shape = LlamaShape.from_config(settings["model"])
    start_bytes = worker_start_bytes(atoll)
    results = {name: [] for name in ("atoll", *peers)}
    for _ in range(turns):
        results["atoll"].append(run_atoll(atoll, config, STEPS[shape_name], start_bytes))
        for kind in peers:
            results[kind].append(run_peer(kind, STEPS[shape_name], settings))

    rows = [summarise(name, of_name) for name, of_name in results.items()]
    eager = next(row for row in rows if row["name"] == "eager")
    flops = shape.flops_per_token()
    report = Report(f"{shape_name}: {shape.layers} layers, hidden {shape.hidden}, vocabulary {shape.vocab}, "
                    f"{settings['train']['sequences_per_step']} x {shape.context} tokens, {turns} turns")
    report.table(
        ("", "tokens/s", "fastest", "to eager", "of peak", "peak GFLOP/s", "MB above start"),
        [(row["name"], f"{row['median']:.1f}", f"{row['best']:.1f}", f"{row['median'] / eager['median']:.2f}x",
          f"{row['median'] * flops / row['peak']:.2f}", f"{row['peak'] / 1e9:.0f}", f"{row['memory'] / 1e6:.0f}")
         for row in rows])
    ours = rows[0]
    speedup, share = ours["median"] / eager["median"], ours["median"] * flops / ours["peak"]
    report.bound("speed", f"{speedup:.2f}x eager, {share:.2f} of the matmul peak",
                 speedup >= SPEEDUP[shape_name] or share >= SHARE_OF_PEAK,
                 f"at least {SPEEDUP[shape_name]}x or {SHARE_OF_PEAK}")
    report.at_most("memory above start, MB", ours["memory"] / 1e6, eager["memory"] / 1e6, "{:.0f}")
    for result in results["atoll"]:
        report.equal("peak bytes predicted and measured", result["peak_bytes_predicted"], result["peak_bytes_measured"])
    return report


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/eager/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=list(SPEEDUP), help="s1, s2, s3")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--turns", type=int, default=5, help="of each program")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    options = parser.parse_args()
    atoll = Atoll(options.preset)
    peers = [kind for kind in PEERS if kind == "eager" or kind in options.peers]
    reports = [compare(name, atoll, options.turns, peers) for name in options.shapes]
    Report.finish_all(reports)


if __name__ == "__main__":
    main()
