#!/usr/bin/env python3
"""Gradients of SPLADE's head by PyTorch, for expanders.

    tests/pytorch/expander.py > FILE

Prints texts, terms, what the head makes of them, and the gradients of a weighted sum of that by autograd in float64.
tests/pytorch/recorded/expander.json has what PyTorch 2.15 printed.
"""

import json
import random

import torch

DIM, TERMS = 6, 17

# The same on every machine and in every version.
numbers = random.Random(33)


def uniform(*shape):
    """Random float32 numbers, as float64."""
    values = [numbers.uniform(-1, 1) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(values).reshape(shape).double().requires_grad_()


def case(log1p, bias):
    lengths = [3, 1, 7, 4, 2]
    vectors, terms = uniform(sum(lengths), DIM), uniform(TERMS, DIM)
    biases = (uniform(TERMS).detach() * 0.25 + bias).float().double().requires_grad_()
    # Each text keeps its last position.
    left_out, ends = [], []
    for length in lengths:
        left_out += [numbers.random() < 0.3 for _ in range(length - 1)] + [False]
        ends.append(len(left_out))
    upstream = uniform(len(lengths), TERMS).detach()

    # As SPLADE does it: padded texts, scores that are left out at -inf, a maximum over positions, a ReLU.
    longest = max(lengths)
    padded = torch.stack(
        [
            torch.cat([vectors[end - length : end], torch.zeros(longest - length, DIM).double()])
            for end, length in zip(ends, lengths)
        ]
    )
    out = torch.ones(len(lengths), longest, dtype=torch.bool)
    for text, (end, length) in enumerate(zip(ends, lengths)):
        out[text, :length] = torch.tensor(left_out[end - length : end])
    scores = (padded @ terms.T + biases).masked_fill(out.unsqueeze(2), -torch.inf)
    values = torch.relu(scores.max(dim=1).values)
    if log1p:
        values = torch.log1p(values)
    (values * upstream).sum().backward()

    flat = lambda tensor: tensor.detach().flatten().tolist()
    return {
        "log1p": log1p,
        "ends": ends,
        "left_out": [int(one) for one in left_out],
        "vectors": flat(vectors),
        "terms": flat(terms),
        "biases": flat(biases),
        "upstream": flat(upstream),
        "values": flat(values),
        "vectors_gradient": flat(vectors.grad),
        "terms_gradient": flat(terms.grad),
        "biases_gradient": flat(biases.grad),
    }


print(
    json.dumps(
        {
            "pytorch": torch.__version__.split("+")[0],
            "dim": DIM,
            "cases": [case(log1p, bias) for log1p in (False, True) for bias in (-0.75, 0.25)],
        }
    )
)
