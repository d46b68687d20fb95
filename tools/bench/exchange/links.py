"""Sites on hosts with links between them: each host is a network namespace of the caller's own mount of /run/netns."""
import contextlib
import json
import subprocess
import time

PORT = 7711
IPERF_SECONDS = 8


def on_host(host, *command):
    return ["ip", "netns", "exec", host, *map(str, command)]


def iperf_bits_per_second(hosts, addresses, connections):
    """What both directions at once reach; the slower of the two."""
    server = subprocess.Popen(on_host(hosts[0], "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        shown = subprocess.run(
            on_host(hosts[1], "iperf3", "-c", addresses[0], "--bidir", "-J", "-O", 1, "-t", IPERF_SECONDS,
                    "-P", connections), capture_output=True, text=True, timeout=IPERF_SECONDS + 30)
    finally:
        server.terminate()
        server.wait()
    end = json.loads(shown.stdout)["end"]
    return min(end["sum_received"]["bits_per_second"], end["sum_received_bidir_reverse"]["bits_per_second"])


def exchange(atoll, hosts, addresses, arguments, timeout=900):
    """`atoll bench exchange` with one site on each host; the report of site 0."""
    meeting = f"{addresses[0]}:{PORT}"
    guests = []
    host = subprocess.Popen(
        on_host(hosts[0], atoll, "bench", "exchange", "--sites", len(hosts), "--bind", meeting, "--json", *arguments),
        stdout=subprocess.PIPE, text=True)
    try:
        guests = [subprocess.Popen(on_host(name, atoll, "bench", "exchange", "--coordinator", meeting, "--site", site))
                  for site, name in enumerate(hosts) if site > 0]
        output, _ = host.communicate(timeout=timeout)
        for guest in guests:
            guest.wait(30)
    finally:
        for process in (host, *guests):
            process.kill()
    return json.loads(output)


@contextlib.contextmanager
def shaped_pair(rate_mbit):
    """Two hosts joined by a veth pair with a token bucket at either end and no delay."""
    hosts, addresses = ["exchange-a", "exchange-b"], ["10.78.0.1", "10.78.0.2"]
    try:
        for host in hosts:
            subprocess.run(["ip", "netns", "add", host], check=True)
            subprocess.run(["ip", "-n", host, "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "-n", hosts[0], "link", "add", "wan0", "type", "veth", "peer", "name", "wan0", "netns",
                        hosts[1]], check=True)
        for host, address in zip(hosts, addresses):
            subprocess.run(["ip", "-n", host, "address", "add", f"{address}/24", "dev", "wan0"], check=True)
            subprocess.run(["ip", "-n", host, "link", "set", "wan0", "up"], check=True)
            subprocess.run(["tc", "-n", host, "qdisc", "add", "dev", "wan0", "root", "tbf", "rate", f"{rate_mbit}mbit",
                            "burst", "256kb", "latency", "50ms"], check=True)
        yield hosts, addresses
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "delete", host], check=False)
