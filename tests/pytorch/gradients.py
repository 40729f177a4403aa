#!/usr/bin/env python3
"""Gradients and steps by PyTorch, for the training of heads.

    tests/pytorch/gradients.py > FILE

Prints a small classifier, texts, the gradients of the loss by autograd in float64, and the weights after some steps of Adam.
tests/pytorch/recorded/gradients.json has what PyTorch 2.15 printed.
"""

import json
import random

import torch
from torch.nn import functional as F

DIM, WORDS, CHANNELS, CLASSES = 5, 14, 4, 3
WIDTHS = [2, 3]
STEPS, LEARNING_RATE, WEIGHT_DECAY = 5, 0.01, 0.001
CLASS_WEIGHTS = [1.0, 3.0, 0.5]

# The same on every machine and in every version.
numbers = random.Random(21)


def uniform(*shape):
    """Random float32 numbers, as float64."""
    values = [numbers.uniform(-1, 1) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(values).reshape(shape).double().requires_grad_()


def loss(weights, texts, classes, padding, probabilities):
    """The mean loss. Softmax: each text by the weight of its class. Sigmoid: the sum over classes."""
    scores = []
    for text in texts:
        # [1, DIM, tokens]
        vectors = weights["vectors"][torch.tensor(text)].T.unsqueeze(0)
        features = []
        for width, filters, bias in zip(WIDTHS, weights["filters"], weights["biases"]):
            # Ours are [channels, width, DIM].
            maps = F.conv1d(vectors, filters.transpose(1, 2), bias, padding=width - 1 if padding else 0)
            features.append(F.relu(maps).max(dim=2).values)
        scores.append(F.linear(torch.cat(features, dim=1), weights["dense"], weights["dense_bias"]))
    class_weights = torch.tensor(CLASS_WEIGHTS, dtype=torch.float64)
    scores = torch.cat(scores)
    if probabilities == "softmax":
        return F.cross_entropy(scores, torch.tensor([own[0] for own in classes]), weight=class_weights)
    targets = torch.tensor([[float(one in own) for one in range(CLASSES)] for own in classes]).double()
    every = F.binary_cross_entropy_with_logits(scores, targets, pos_weight=class_weights, reduction="none")
    return every.sum(dim=1).mean()


def flat(weights, of):
    """Lists of numbers for each name."""
    one = lambda tensor: of(tensor).flatten().tolist()
    return {
        name: [one(part) for part in value] if isinstance(value, list) else one(value)
        for name, value in weights.items()
    }


def case(padding, probabilities):
    weights = {
        "filters": [uniform(CHANNELS, width, DIM) for width in WIDTHS],
        "biases": [uniform(CHANNELS) for _ in WIDTHS],
        "dense": uniform(CLASSES, CHANNELS * len(WIDTHS)),
        "dense_bias": uniform(CLASSES),
        "vectors": uniform(WORDS, DIM),
    }
    texts = [[numbers.randrange(WORDS) for _ in range(3 + index % 5)] for index in range(9)]
    # Every word is met: only then do PyTorch's steps and ours change the same vectors.
    texts.append(list(range(WORDS)))
    if probabilities == "softmax":
        classes = [[index % CLASSES] for index in range(len(texts))]
    else:
        # None, one, several.
        classes = [[one for one in range(CLASSES) if index >> one & 1] for index in range(len(texts))]
    start = flat(weights, lambda tensor: tensor.detach())
    parts = [*weights["filters"], *weights["biases"], weights["dense"], weights["dense_bias"], weights["vectors"]]
    optimizer = torch.optim.Adam(parts, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    gradients = None
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean = loss(weights, texts, classes, padding, probabilities)
        mean.backward()
        if gradients is None:
            gradients, first = flat(weights, lambda tensor: tensor.grad), mean.item()
        optimizer.step()
    return {
        "padding": padding,
        "probabilities": probabilities,
        "texts": texts,
        "classes": classes,
        "start": start,
        "loss": first,
        "gradients": gradients,
        "end": flat(weights, lambda tensor: tensor.detach()),
    }


print(
    json.dumps(
        {
            "pytorch": torch.__version__.split("+")[0],
            "dim": DIM,
            "channels": CHANNELS,
            "widths": WIDTHS,
            "class_weights": CLASS_WEIGHTS,
            "steps": STEPS,
            "learning_rate": LEARNING_RATE,
            "weight_decay": WEIGHT_DECAY,
            "cases": [case(padding, kind) for kind in ("softmax", "sigmoid") for padding in (False, True)],
        }
    )
)
