"""The runs that are compared: what each changes in the one config that they share."""
import dataclasses

SEQUENCES = 8  # of all sites together, in each step
CONTEXT = 128  # tokens

CONFIG = """\
[run]
name = "outer_quality"
seed = {seed}
[model]
kind = "llama"
layers = 4
hidden = 128
heads = 4
ffn = 352
vocab = 257
context = {context}
[data]
train = ["{data}/train_*.bin"]
validation = ["{data}/validation_*.bin"]
[train]
steps = {steps}
sequences_per_step = {sequences}
[optim]
lr = 2e-3
warmup_steps = 30
schedule = "cosine"
{optim}
[outer]
{outer}
[exchange]
{exchange}
[island]
threads = 1
[checkpoint]
interval = 0
[monitor]
log_interval = 100
eval_interval = 0
eval_windows = 2048
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the table. The three texts are lines of the tables [outer], [exchange] and [optim]."""
    outer: str = "inner_steps = 30"
    exchange: str = 'codec = "identity"'
    optim: str = ""
    sites: int = 2

    def config(self, seed, steps, data):
        text = CONFIG.format(seed=seed, steps=steps, data=data, context=CONTEXT, sequences=SEQUENCES // self.sites,
                             outer=self.outer, exchange=self.exchange, optim=self.optim)
        return text + "".join(f'[[site]]\nname = "site{index}"\n' for index in range(self.sites))


def outer(*lines):
    return "\n".join(("inner_steps = 30", *lines))


NESTEROV = ("lr = 0.6", "momentum = 0.9")  # as published, for fewer sites than that was for

DENSE_CODECS = ("fp16", "bf16", "int8", "int4", "e3m0")
LOSSY_CODECS = ("sign", "top_k")  # with error feedback

CASES = {
    "synchronous": Case(sites=1, outer='method = "average"'),
    "default": Case(),
    "no warm-up": Case(outer=outer(*NESTEROV, "warmup_rounds = 0")),
    **{f"warm-up {rounds}": Case(outer=outer(*NESTEROV, f"warmup_rounds = {rounds}")) for rounds in (5, 10, 20, 40)},
    "default, 4 sites": Case(sites=4),
    "warm-up 20, 4 sites": Case(outer=outer(*NESTEROV), sites=4),
    **{codec: Case(exchange=f'codec = "{codec}"') for codec in (*DENSE_CODECS, *LOSSY_CODECS)},
    **{f"{codec} without feedback": Case(exchange=f'codec = "{codec}"\nerror_feedback = 0') for codec in LOSSY_CODECS},
    "streaming": Case(outer=outer("fragments = 2", "overlap_steps = 3")),
    "adam": Case(outer=outer('method = "adam"')),
    "sparse_loco": Case(outer=outer('method = "sparse_loco"'), exchange=""),
    "delayed": Case(outer=outer('method = "delayed"')),
    "eager": Case(outer=outer('method = "eager"')),
    "muon, synchronous": Case(sites=1, outer='method = "average"', optim='kind = "muon"'),
    "muloco": Case(optim='kind = "muon"'),
}
