"""Inner steps of a real run while a fragment is exchanged beside them, against the others of the same run."""
import json
import statistics
import subprocess
import tempfile

from shared.atoll import SOURCE
from shared.report import Report

INNER_STEPS, OVERLAP_STEPS, ROUNDS = 60, 30, 6
RATE = "400mbit"  # of the loopback device, which carries both directions
LIMIT = 1.05
# 10 M parameters in fp32 are on the link for some 25 steps.
CONFIG = """\
[run]
name = "beside"
[model]
kind = "llama"
layers = 6
hidden = 256
heads = 4
ffn = 688
vocab = 16384
context = 128
[data]
train = ["{data}/train_*.bin"]
[train]
steps = {steps}
sequences_per_step = 1
micro_batch = 1
[outer]
inner_steps = {inner_steps}
overlap_steps = {overlap_steps}
warmup_rounds = 0
[exchange]
codec = "{codec}"
zstd = false
shared_memory = false
[island]
threads = 1
[checkpoint]
interval = 0
[monitor]
log_interval = 1
[[site]]
name = "measured"
[[site]]
name = "other"
inner_steps = {other_steps}
"""


def run(atoll, folder, name, codec, other_steps):
    """Seconds of the steps that an exchange ran beside, and of the others; the first round is not counted."""
    config = folder / f"{name}.toml"
    config.write_text(CONFIG.format(data=folder / "data", steps=ROUNDS * INNER_STEPS, inner_steps=INNER_STEPS,
                                    overlap_steps=OVERLAP_STEPS, codec=codec, other_steps=other_steps))
    shape = f"ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate {RATE} burst 256kb latency 50ms && exec \"$@\""
    subprocess.run(["unshare", "--net", "sh", "-c", shape, "sh", *atoll.command("run", config, "--run-dir", folder / name)],
                   check=True, capture_output=True, timeout=900)
    records = [json.loads(line) for line in (folder / name / "metrics" / "measured.jsonl").read_text().splitlines()]
    tokens = 128
    seconds = {record["step"]: tokens / record["tokens_per_second"] for record in records if "train_loss" in record}
    beside = set()
    for record in records:
        if "contributors" not in record:
            continue
        step = record["step"] - OVERLAP_STEPS  # its contribution was complete then
        left = record["exchange_seconds"]
        while left > 0 and step + 1 in seconds:
            step += 1
            left -= seconds[step]
            beside.add(step)
    counted = range(INNER_STEPS + 1, ROUNDS * INNER_STEPS + 1)
    return ([seconds[step] for step in counted if step in beside],
            [seconds[step] for step in counted if step not in beside])


def beside(atoll, options):
    report = Report(f"beside: inner steps of a real run while 10 M parameters are exchanged at {RATE}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="atoll-beside-") as path:
        folder = type(SOURCE)(path)
        atoll("prepare", SOURCE / "src", "--out", folder / "data", "--held-out", "0.1")
        for codec in ("identity", "int8"):
            for name, other_steps in (("a core is free", 1), ("none is free", INNER_STEPS)):
                during, others = run(atoll, folder, f"{codec}-{other_steps}", codec, other_steps)
                ratio = statistics.median(during) / statistics.median(others)
                rows.append([f"{codec}, {name}", len(during), f"{1e3 * statistics.median(during):.1f}", len(others),
                             f"{1e3 * statistics.median(others):.1f}", f"{ratio:.3f}"])
                if other_steps == 1:
                    report.at_most(f"{codec}, a core is free: step beside the exchange over others", ratio, LIMIT)
    report.table(["case", "steps beside", "ms", "others", "ms", "ratio"], rows)
    return report
