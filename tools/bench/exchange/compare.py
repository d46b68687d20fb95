"""The exchange between sites at the limit of its links: loopback beside Gloo's own all-reduce, emulated long links and a
shaped veth pair beside iperf3. Every figure is the median of the rounds of one run."""
import argparse
import json
import pathlib
import subprocess
import sys

from beside import beside
from links import exchange, iperf_bits_per_second, shaped_pair
from shared.atoll import Atoll
from shared.report import Report

HERE = pathlib.Path(__file__).resolve().parent
WAN_ELEMENTS = 25_000_000
WAN_SECONDS = {"int8": 1.1, "int4": 0.65, "top_k": 0.45}
FOUR_ELEMENTS = 6_000_000
FOUR_BYTES = {"identity": 4, "int8": 1}  # an element
IDLE_SECONDS = 60


def in_lab(atoll, hosts, rate_mbit, delay_ms, connections, cases, uplinks=()):
    slower = [word for host, mbit in uplinks for word in ("--uplink", f"{host}:{mbit}")]
    command = [atoll.binaries / "netlab", "--hosts", hosts, "--rate-mbit", rate_mbit, "--delay-ms", delay_ms, *slower, "--",
               sys.executable, HERE / "in_lab.py", atoll.binaries / "atoll", hosts, connections, json.dumps(cases)]
    shown = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(shown.stdout)


def row(name, result):
    return [name, f"{result['seconds']:.4f}", f"{result['seconds_minimum']:.4f}", f"{result['payload_bytes'] / 1e6:.2f}",
            f"{result['relative_error']:.1e}"]


HEADER = ["case", "seconds", "minimum", "MB sent", "error"]


def loopback(atoll, options):
    report = Report(f"loopback: {options.elements} fp32 elements beside Gloo's all-reduce of the same buffers")
    for sites, limit in ((2, 0.8), (4, 0.93)):
        result = atoll.json("bench", "exchange", "--sites", sites, "--elements", options.elements, "--codec",
                            "identity", "--no-zstd", "--compare", "gloo", "--rounds", options.rounds)
        report.table([*HEADER, "Gloo", "CPU s", "Gloo CPU s"],
                     [[*row(f"{sites} sites", result), f"{result['gloo_seconds']:.4f}",
                       f"{result['cpu_seconds']:.3f}", f"{result['gloo_cpu_seconds']:.3f}"]])
        report.at_most(f"{sites} sites: share of Gloo's time", result["ratio_to_gloo"], limit)
    small = atoll.json("bench", "exchange", "--elements", 1024, "--codec", "identity", "--rounds", 51)
    report.at_most("4 kB: milliseconds", 1e3 * small["seconds"], 5)
    return report


def wan(atoll, options):
    report = Report("wan: two sites, 200 Mbit/s, 25 ms one way, 25 M elements")
    cases = {codec: ["--elements", WAN_ELEMENTS, "--codec", codec, "--rounds", options.rounds]
             for codec in ("identity", "int8", *options.more_codecs)}
    cases["identity"].append("--no-zstd")
    if options.idle:
        cases |= {f"{codec} after {IDLE_SECONDS} s": [*arguments, "--idle", IDLE_SECONDS]
                  for codec, arguments in cases.items()}
    results = in_lab(atoll, 2, 200, 25, options.connections, cases)
    iperf = results.pop("iperf_bits_per_second")
    report.table(HEADER, [row(name, result) for name, result in results.items()])
    for name, result in results.items():
        codec = name.split()[0].split("/")[0]
        if codec == "identity":
            reached = 8 * result["payload_bytes"] / result["seconds"]
            report.at_least(f"{name}: share of iperf3's {iperf / 1e6:.1f} Mbit/s both ways", reached / iperf, 0.95)
        else:
            report.at_most(f"{name}: seconds", result["seconds"], WAN_SECONDS.get(codec, WAN_SECONDS["int4"]))
    return report


def four_sites(atoll, options):
    report = Report("four: four sites, 50 Mbit/s, 25 ms one way, 6 M elements")
    arguments = ["--elements", FOUR_ELEMENTS, "--no-zstd", "--rounds", options.rounds, "--codec"]
    results = in_lab(atoll, 4, 50, 25, options.connections, {codec: [*arguments, codec] for codec in FOUR_BYTES})
    del results["iperf_bits_per_second"]
    report.table(HEADER, [row(codec, result) for codec, result in results.items()])
    for codec, result in results.items():
        # Each site sends its contribution but for its own part, and the mean of its part to all others.
        ideal = 8 * 3 / 4 * 2 * FOUR_BYTES[codec] * FOUR_ELEMENTS / 50e6
        report.at_most(f"{codec}: times the ideal of {ideal:.3f} s", result["seconds"] / ideal, 1.1)
    return report


def slow_uplink(atoll, options):
    report = Report("slow: four sites, 50 Mbit/s, 25 ms one way, 6 M elements, one site sends at 25 Mbit/s")
    arguments = ["--elements", FOUR_ELEMENTS, "--codec", "int8", "--no-zstd", "--rounds", options.rounds]
    results = in_lab(atoll, 4, 50, 25, options.connections,
                     {"equal shares": [*arguments, "--equal-shares"], "shares by rate": arguments}, [(3, 25)])
    del results["iperf_bits_per_second"]
    report.table(HEADER, [row(name, result) for name, result in results.items()])
    # The slow site sends one and a half fragments with an equal share, and one with none.
    ratio = results["shares by rate"]["seconds"] / results["equal shares"]["seconds"]
    report.at_most("shares by rate: times the time of equal shares", ratio, 0.9)
    return report


def shaped(atoll, options):
    report = Report("gigabit: two sites, a veth pair with token buckets of 1 Gbit/s, 25 M fp32 elements")
    with shaped_pair(1000) as (hosts, addresses):
        iperf = iperf_bits_per_second(hosts, addresses, options.connections)
        result = exchange(atoll.binaries / "atoll", hosts, addresses,
                          ["--elements", WAN_ELEMENTS, "--codec", "identity", "--no-zstd", "--rounds", options.rounds])
    report.table(HEADER, [row("identity", result)])
    reached = 8 * result["payload_bytes"] / result["seconds"]
    print(f"  iperf3 both ways: {iperf / 1e6:.0f} Mbit/s")
    report.at_least("share of 1 Gbit/s", reached / 1e9, 0.9)
    return report


PARTS = {"loopback": loopback, "wan": wan, "four": four_sites, "slow": slow_uplink, "gigabit": shaped, "beside": beside}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--only", choices=PARTS, action="append", help="repeatable; default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--elements", type=int, default=100_000_000, help="of the loopback case")
    parser.add_argument("--connections", type=int, default=1, help="per pair of sites, and of iperf3")
    parser.add_argument("--more-codecs", nargs="*", default=["int4", "top_k"], help="measured on the long link beside int8")
    parser.add_argument("--idle", action="store_true", help="the long link also after an idle minute before each round")
    options = parser.parse_args()
    atoll = Atoll(options.preset)
    Report.finish_all([PARTS[name](atoll, options) for name in options.only or PARTS])


if __name__ == "__main__":
    main()
