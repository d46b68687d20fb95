"""DiLoCo and synchronous data parallelism in plain PyTorch, on batches and initial parameters that are given.

One round: every site starts from the outer parameters, takes H AdamW steps with moments of its own that it keeps
between rounds, and contributes old minus new; the mean of the contributions is the gradient of an outer SGD with
Nesterov momentum. Source: Douillard et al., "DiLoCo" (arXiv 2311.08105).
"""
import copy
import math

import torch
import torch.nn.functional as F

from shared.batches import document_mask


def learning_rate(optim, step, steps):
    warmup = optim["warmup_steps"]
    if step < warmup:
        return optim["lr"] * (step + 1) / warmup
    if optim["schedule"] == "constant":
        return optim["lr"]
    assert optim["schedule"] == "cosine", optim["schedule"]
    progress = (step - warmup) / max(1, steps - 1 - warmup)
    floor = optim["final_lr_fraction"]
    return optim["lr"] * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


def inner_optimizer(model, optim):
    """AdamW with decoupled decay on matrices only."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": optim["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(optim["beta1"], optim["beta2"]), eps=optim["epsilon"], fused=True)


def loss_sum(model, batch):
    logits = model(batch.tokens, batch.positions, batch.mask)
    return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-1, reduction="sum")


def train_step(model, optimizer, batches, rate, clip):
    """One inner step on all the batches together; the mean loss."""
    total, tokens = 0.0, sum(int((batch.targets >= 0).sum()) for batch in batches)
    optimizer.zero_grad(set_to_none=True)
    for batch in batches:
        loss = loss_sum(model, batch) / tokens
        loss.backward()
        total += loss.item()
    parameters = list(model.parameters())
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in parameters]))
    if clip > 0 and norm > clip:
        for parameter in parameters:
            parameter.grad.mul_(clip / norm)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return total


class DiLoCo:
    """batches[site][step] is a list of micro-batches; `config` is a resolved Atoll config."""

    def __init__(self, initial, config, batches, outer_lr):
        self.outer = copy.deepcopy(initial)
        self.sites = [copy.deepcopy(initial) for _ in batches]
        self.optimizers = [inner_optimizer(site, config["optim"]) for site in self.sites]
        self.outer_optimizer = torch.optim.SGD(self.outer.parameters(), lr=outer_lr, nesterov=True,
                                               momentum=config["outer"]["momentum"])
        self.config, self.batches = config, batches
        self.losses = [[] for _ in batches]

    def round(self, number):
        inner_steps, steps = self.config["outer"]["inner_steps"], self.config["train"]["steps"]
        optim = self.config["optim"]
        for index, site in enumerate(self.sites):
            for step in range(number * inner_steps, (number + 1) * inner_steps):
                rate = learning_rate(optim, step, steps)
                self.losses[index].append(train_step(site, self.optimizers[index], self.batches[index][step], rate,
                                                     optim["grad_clip"]))
        with torch.no_grad():
            for outer, *local in zip(self.outer.parameters(), *(site.parameters() for site in self.sites)):
                outer.grad = sum(outer - parameter for parameter in local) / len(local)
            self.outer_optimizer.step()
            for site in self.sites:
                site.load_state_dict(self.outer.state_dict())


def synchronous(initial, config, batches):
    """Every step trains on the batches of all sites together: data parallelism at equal tokens."""
    model, optim, steps = copy.deepcopy(initial), config["optim"], config["train"]["steps"]
    optimizer = inner_optimizer(model, optim)
    for step in range(steps):
        together = [batch for site in batches for batch in site[step]]
        train_step(model, optimizer, together, learning_rate(optim, step, steps), optim["grad_clip"])
    return model


def held_out_loss(model, tokens, end_of_text, windows):
    """Mean over the first `windows` windows of the model's context, documents apart."""
    context, total, count = model.shape.context, 0.0, 0
    with torch.no_grad():
        for begin in range(0, min(windows * context, len(tokens) - context - 1), context):
            inputs = torch.from_numpy(tokens[begin : begin + context])[None]
            targets = torch.from_numpy(tokens[begin + 1 : begin + context + 1])
            pieces = (inputs == end_of_text).cumsum(1)
            first = torch.cat((torch.ones(1, 1, dtype=torch.bool), pieces[:, 1:] != pieces[:, :-1]), 1)
            index = torch.arange(context)[None]
            positions = index - torch.where(first, index, 0).cummax(1).values
            logits = model(inputs, positions, document_mask(pieces))[0]
            total += F.cross_entropy(logits, targets, reduction="sum").item()
            count += context
    return total / count
