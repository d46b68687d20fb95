"""Inside a lab of three hosts: the coordinator on wan0, one site on each of wan1 and wan2. Prints one JSON object: the
sites' summaries, and the bytes and packets that left and reached every host's network device.

in_lab.py ATOLL CONFIG DIRECTORY SITE...
"""
import json
import os
import pathlib
import subprocess
import sys
import time

DEADLINE_SECONDS = 540


def start(host, log, *command):
    return subprocess.Popen(["ip", "netns", "exec", host, *map(str, command)], stdout=log, stderr=log)


def counters(host):
    shown = subprocess.run(["ip", "-n", host, "-j", "-s", "link", "show", "wan0"], capture_output=True, check=True)
    statistics = json.loads(shown.stdout)[0]["stats64"]
    return {direction: {key: statistics[direction][key] for key in ("bytes", "packets")} for direction in ("tx", "rx")}


def main():
    atoll, config, directory, *sites = sys.argv[1:]
    folder = pathlib.Path(directory)
    processors = sorted(os.sched_getaffinity(0))
    with open(folder / "log.txt", "w") as log:
        coordinator = start("wan0", log, atoll, "coordinator", "--config", config, "--run-dir", folder / "coordinator")
        launchers = []
        for index, site in enumerate(sites):
            # Each site believes that the machine is its own; give it a part.
            own = processors[index % len(processors)]
            launchers.append(start(f"wan{index + 1}", log, "taskset", "-c", own, atoll, "run", config, "--site", site,
                                   "--run-dir", folder / site))
        deadline = time.monotonic() + DEADLINE_SECONDS
        codes = [process.wait(max(0.0, deadline - time.monotonic())) for process in (*launchers, coordinator)]
    if any(codes):
        sys.exit(f"the sites and the coordinator ended with {codes}; see {folder}/log.txt")
    results = {site: {"summary": json.loads((folder / site / "summary.json").read_text()),
                      "device": counters(f"wan{index + 1}")} for index, site in enumerate(sites)}
    json.dump(results | {"coordinator": {"device": counters("wan0")}}, sys.stdout)


if __name__ == "__main__":
    main()
