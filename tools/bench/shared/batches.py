"""Batch dumps of a run: what each site trained on, step by step. Format: src/data/README.md, "Batch dump"."""
import dataclasses

import numpy as np
import torch

MAGIC, VERSION = b"ATOLLBAT", 1


@dataclasses.dataclass
class Batch:
    """One micro-batch as tensors [sequences, context]; mask [sequences, 1, context, context], True = may look."""

    step: int
    tokens: torch.Tensor
    targets: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor

    def reversed(self):
        """The same sequences in the opposite order: the same sums, rounded differently."""
        return Batch(self.step, *(part.flip(0) for part in (self.tokens, self.targets, self.positions, self.mask)))


def document_mask(pieces):
    """pieces [sequences, context]: the number of the piece each token belongs to; a token sees its own piece only."""
    context = pieces.shape[1]
    causal = torch.ones(context, context, dtype=torch.bool).tril()
    return ((pieces[:, :, None] == pieces[:, None, :]) & causal)[:, None]


def read_batches(path):
    """The batches of a dump in the order of the file, which is that of training."""
    content = np.memmap(path, dtype=np.uint8, mode="r")
    if bytes(content[:8]) != MAGIC:
        raise ValueError(f"{path} is no batch dump")
    version, sequences, context = (int(word) for word in np.frombuffer(content[8:32], dtype="<i8"))
    if version != VERSION:
        raise ValueError(f"{path} has version {version}, not {VERSION}")
    count = sequences * context
    record = np.dtype([("step", "<i8"), ("block", "<i8"), ("micro_batch", "<i8"), ("tokens", "<i4", count),
                       ("targets", "<i4", count), ("positions", "<i4", count), ("starts", "<i4", count + 1)])
    batches = []
    for entry in np.frombuffer(content[32:], dtype=record):
        pieces = np.searchsorted(entry["starts"], np.arange(count), side="right")

        def tensor(values):
            return torch.from_numpy(np.asarray(values, dtype=np.int64).reshape(sequences, context))

        batches.append(Batch(int(entry["step"]), tensor(entry["tokens"]), tensor(entry["targets"]),
                             tensor(entry["positions"]), document_mask(tensor(pieces))))
    return batches
