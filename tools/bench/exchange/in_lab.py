"""Inside a lab (tools/netlab): runs the given cases between its hosts and prints one JSON object.

in_lab.py ATOLL HOSTS CONNECTIONS CASES, the cases as JSON: {name: arguments of `atoll bench exchange`}.
"""
import json
import sys

from links import exchange, iperf_bits_per_second


def main():
    atoll, count, connections, cases = sys.argv[1:]
    hosts = [f"site{index}" for index in range(int(count))]
    addresses = [f"10.77.{index}.1" for index in range(int(count))]
    results = {"iperf_bits_per_second": iperf_bits_per_second(hosts[:2], addresses, connections)}
    for name, arguments in json.loads(cases).items():
        results[name] = exchange(atoll, hosts, addresses, [*arguments, "--connections", connections])
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
