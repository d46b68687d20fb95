#!/usr/bin/env python3
"""Writes tests/golden/outer.txt: outer steps, a streamed run and methods that are a round late, computed here a second
time from their formulas.

Every operation is rounded to fp32 by itself, as Atoll does it, so the numbers must be equal to the last bit. Lines are
`word value...`, floats in hexadecimal. No argument; no dependency beyond Python.
"""
import math
import pathlib
import random
import struct

TARGET = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/outer.txt"


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def step(rule, round_number, delta, theta, m, v):
    """One element of one outer step; each line is one rounding."""
    kind, lr, mu, beta2, epsilon = rule
    if kind == "sgd":
        return f32(theta - f32(lr * delta)), m, v
    if kind in ("nesterov", "heavy_ball"):
        m = f32(f32(mu * m) + delta)
        direction = f32(delta + f32(mu * m)) if kind == "nesterov" else m
        return f32(theta - f32(lr * direction)), m, v
    t = round_number + 1
    m = f32(f32(mu * m) + f32(f32(1 - mu) * delta))
    v = f32(f32(beta2 * v) + f32(f32(1 - beta2) * f32(delta * delta)))
    size = f32(lr / (1 - mu**t))
    scale = f32(1 / (1 - beta2**t))
    root = f32(f32(math.sqrt(f32(v * scale))) + epsilon)
    return f32(theta - f32(f32(size * m) / root)), m, v


def write_rules(lines, noise):
    for rule in (("sgd", f32(0.7), 0.0, 0.0, 0.0), ("heavy_ball", f32(0.6), f32(0.9), 0.0, 0.0),
                 ("nesterov", f32(0.6), f32(0.9), 0.0, 0.0), ("adam", f32(0.01), f32(0.9), f32(0.99), f32(1e-3))):
        lines.append(f"rule {rule[0]} " + " ".join(number.hex() for number in rule[1:]))
        state = [(noise(1.0), 0.0, 0.0) for _ in range(8)]
        lines.append("anchor " + " ".join(theta.hex() for theta, _, _ in state))
        for number in range(6):
            deltas = [noise(0.02) for _ in state]
            state = [step(rule, number, delta, *element) for delta, element in zip(deltas, state)]
            lines.append("delta " + " ".join(delta.hex() for delta in deltas))
            lines.append("anchor " + " ".join(theta.hex() for theta, _, _ in state))


def write_streaming(lines, noise):
    """Two sites, two fragments of two elements, n = 6, tau = 2, alpha = 0.5, Nesterov: every local step is given."""
    inner, tau, alpha, steps, fragments = 6, 2, f32(0.5), 18, ((0, 1), (2, 3))
    rule = ("nesterov", f32(0.6), f32(0.9), 0.0, 0.0)
    anchor = [noise(1.0) for _ in range(4)]
    momentum, local = [0.0] * 4, [list(anchor), list(anchor)]
    lines.append("streaming")
    lines.append("anchor " + " ".join(value.hex() for value in anchor))
    pending, turn = {}, 0
    for done in range(1, steps + 1):
        for site in (0, 1):
            moves = [noise(0.02) for _ in anchor]
            lines.append(f"move {site} " + " ".join(value.hex() for value in moves))
            local[site] = [f32(value - move) for value, move in zip(local[site], moves)]
        in_round = (done - 1) % inner + 1
        for number, elements in enumerate(fragments):
            if in_round == (number + 1) * inner // len(fragments) - tau:
                for i in elements:
                    pending[i] = [f32(anchor[i] - local[site][i]) for site in (0, 1)]
            if in_round == (number + 1) * inner // len(fragments):
                for i in elements:
                    one, other = pending.pop(i)
                    mean = f32(f32(one + other) / 2)
                    anchor[i], momentum[i], _ = step(rule, 0, mean, anchor[i], momentum[i], 0.0)
                    for site in (0, 1):
                        gap = f32(anchor[i] - local[site][i])
                        local[site][i] = f32(local[site][i] + f32(f32(1 - alpha) * gap))
        assert len(pending) <= 2
        lines.append("anchor " + " ".join(value.hex() for value in anchor))
        for site in (0, 1):
            lines.append(f"local {site} " + " ".join(value.hex() for value in local[site]))


def write_late(lines, noise, method):
    """Two sites, three elements, five rounds, Nesterov: the exchange is beside the next round, the last one waits."""
    rounds, rule = 5, ("nesterov", f32(0.6), f32(0.9), 0.0, 0.0)
    ahead = (rule[0], f32(rule[1] * 0.5), *rule[2:])  # each site has half of the weight
    anchor = [noise(1.0) for _ in range(3)]
    momentum, own, kept = [0.0] * 3, [[0.0] * 3, [0.0] * 3], [[0.0] * 3, [0.0] * 3]
    start = [list(anchor), list(anchor)]
    lines.append(f"late {method}")
    lines.append("anchor " + " ".join(value.hex() for value in anchor))
    for number in range(rounds):
        fresh = []
        for site in (0, 1):
            moves = [noise(0.02) for _ in anchor]
            lines.append(f"move {site} " + " ".join(value.hex() for value in moves))
            local = [f32(value - move) for value, move in zip(start[site], moves)]
            fresh.append([f32(value - now) for value, now in zip(start[site], local)])
        last = number == rounds - 1
        for i in range(3):
            sent = [f32(fresh[site][i] + kept[site][i]) if last else kept[site][i] for site in (0, 1)]
            mean = f32(f32(sent[0] + sent[1]) / 2)
            anchor[i], momentum[i], _ = step(rule, 0, mean, anchor[i], momentum[i], 0.0)
            for site in (0, 1):
                start[site][i], kept[site][i] = anchor[i], fresh[site][i]
                if method == "eager" and not last:
                    start[site][i], own[site][i], _ = step(ahead, 0, fresh[site][i], anchor[i], own[site][i], 0.0)
        lines.append("anchor " + " ".join(value.hex() for value in anchor))
        for site in (0, 1):
            lines.append(f"local {site} " + " ".join(value.hex() for value in start[site]))


def main():
    source = random.Random(7)
    lines = []
    noise = lambda scale: f32(source.gauss(0, scale))
    write_rules(lines, noise)
    write_streaming(lines, noise)
    write_late(lines, noise, "delayed")
    write_late(lines, noise, "eager")
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
