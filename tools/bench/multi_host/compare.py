"""A run over slow links beside the same run on loopback.

A coordinator and two sites, each on a host of its own (network namespaces joined by netlab: 25 ms one way, 100 Mbit/s),
must end with the same parameters as the same config on loopback. What the sites count as sent must be what the
method's formula says (payload) and what their network devices saw less TCP/IP headers and the coordinator's messages,
within 2 % (wire).
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from shared.atoll import SOURCE, Atoll
from shared.report import Report

SITES = ("first", "second")
TCP_IP_HEADER_BYTES = 20 + 20 + 12  # with timestamps
WIRE_TOLERANCE = 0.02

# int8 without zstd: 8 bits per element, 2 bytes per block of them and 40 of headers per chunk.
CHUNK_ELEMENTS = 16384  # of fragments below 8 M elements
BLOCK_ELEMENTS = 512
CHUNK_HEADER_BYTES = 40

CONFIG = """\
[run]
name = "multi_host"
[model]
kind = "llama"
layers = 4
hidden = 192
heads = 4
ffn = 512
vocab = 257
context = 128
[data]
train = ["{data}/train_*.bin"]
[train]
steps = {steps}
sequences_per_step = 2
micro_batch = 2
[optim]
lr = 1e-3
[outer]
inner_steps = 10
[exchange]
codec = "int8"
zstd = false
[island]
threads = 1
[coordinator]
address = "{addresses[0]}"
[[site]]
name = "first"
address = "{addresses[1]}"
[[site]]
name = "second"
address = "{addresses[2]}"
[security]
mode = "{security}"
"""
LOOPBACK = ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")
LAB = ("10.77.0.1:7070", "10.77.1.1:7070", "10.77.2.1:7070")


def run_in_lab(atoll, config, folder, options):
    """What in_lab.py prints, after the lab is gone."""
    command = [str(atoll.binaries / "netlab"), "--hosts", "3", "--name", "wan", "--delay-ms", str(options.delay_ms),
               "--rate-mbit", str(options.rate_mbit), "--queue-kib", str(options.queue_kib),
               "--report", str(folder / "links.json"), "--",
               sys.executable, str(pathlib.Path(__file__).with_name("in_lab.py")), str(atoll.binaries / "atoll"),
               str(config), str(folder), *SITES]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=SOURCE)
    if result.returncode != 0:
        if (folder / "log.txt").exists():
            sys.stderr.write((folder / "log.txt").read_text()[-6000:])
        sys.exit(f"the run in the lab ended with {result.returncode}")
    return json.loads(result.stdout)


def payload_bytes(parameters, rounds):
    """Two sites exchange directly: each sends its whole contribution once per round."""
    chunks = -(-parameters // CHUNK_ELEMENTS)
    blocks = -(-parameters // BLOCK_ELEMENTS)
    return rounds * (parameters + 2 * blocks + chunks * CHUNK_HEADER_BYTES)


def carried_bytes(device, direction):
    return device[direction]["bytes"] - device[direction]["packets"] * TCP_IP_HEADER_BYTES


def check_site(report, site, in_lab):
    summary, device = in_lab[site]["summary"], in_lab[site]["device"]
    coordinator = in_lab["coordinator"]["device"]
    report.equal(f"{site}: payload bytes sent, against the formula", summary["payload_bytes_sent"],
                 payload_bytes(summary["parameters"], summary["rounds"]))
    for direction, opposite, key in (("tx", "rx", "wire_bytes_sent"), ("rx", "tx", "wire_bytes_received")):
        control = carried_bytes(coordinator, opposite) // len(SITES)  # it says the same to every site
        between_sites = carried_bytes(device, direction) - control
        difference = abs(summary[key] / between_sites - 1)
        report.bound(f"{site}: {key} {summary[key]:,}, device {between_sites:,} and {control:,} of the coordinator",
                     f"{100 * difference:.2f} % apart",
                     difference <= WIRE_TOLERANCE, f"at most {100 * WIRE_TOLERANCE:.0f} %")


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/multi_host/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--data", type=pathlib.Path, default=SOURCE / "data/linux-doc",
                        help="token shards of the byte tokenizer, as tools/quickstart makes them")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--delay-ms", type=float, default=25, help="one way")
    parser.add_argument("--rate-mbit", type=float, default=100)
    parser.add_argument("--queue-kib", type=float, default=4096,
                        help="of a link; a shallow one drops packets, and a device counts those that TCP sends again")
    options = parser.parse_args()
    atoll = Atoll(options.preset)
    with tempfile.TemporaryDirectory(prefix="atoll-multi-host-") as directory:
        folder = pathlib.Path(directory)
        configs = {}
        for name, addresses, security in (("loopback", LOOPBACK, "loopback"), ("lab", LAB, "insecure")):
            configs[name] = folder / f"{name}.toml"
            configs[name].write_text(CONFIG.format(data=options.data.resolve(), steps=10 * options.rounds,
                                                   addresses=addresses, security=security))
        on_loopback = atoll.json("run", configs["loopback"], "--run-dir", folder / "loopback")
        in_lab = run_in_lab(atoll, configs["lab"], folder, options)

        report = Report(f"{options.delay_ms:g} ms one way, {options.rate_mbit:g} Mbit/s, {options.rounds} rounds, "
                        f"{on_loopback['parameters']:,} parameters")
        rows = [("loopback, both sites", on_loopback)] + [(site, in_lab[site]["summary"]) for site in SITES]
        report.table(("", "rounds", "exchange s", "tokens/s", "parameters_blake2b"),
                     [(name, row["rounds"], f"{row['exchange_seconds']:.2f}", f"{row['tokens_per_second']:.0f}",
                       row["parameters_blake2b"][:16]) for name, row in rows])
        for site in SITES:
            report.equal(f"{site}: parameters_blake2b as on loopback", in_lab[site]["summary"]["parameters_blake2b"],
                         on_loopback["parameters_blake2b"])
            check_site(report, site, in_lab)
        for host in json.loads((folder / "links.json").read_text())["hosts"]:
            print(f"  {host['host']}: {host['sent_bytes'] / 1e6:.1f} MB sent, {host['dropped_packets']} packets dropped")
    Report.finish_all([report])


if __name__ == "__main__":
    main()
