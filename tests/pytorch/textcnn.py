#!/usr/bin/env python3
"""Text classifiers of PyTorch, for `kindred import-head`: their state dicts, and what they answer.

    tests/pytorch/textcnn.py DIR

Writes into DIR: vectors.txt, from which both models start; for each of them NAME.safetensors, and in NAME.json the arguments of
`kindred import-head` and the class scores of some texts. tests/pytorch/recorded has what PyTorch 2.15 wrote.
"""

import json
import random
import struct
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

DIM = 12
SYLLABLES = ["ka", "lo", "mi", "ne", "pu", "ra", "so", "ti", "ve", "zu"]
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES][:60]
TEXTS = 12

# The same on every machine and in every version.
numbers = random.Random(20)


def uniform(*shape, bound=1.0):
    count = torch.Size(shape).numel()
    return torch.tensor([numbers.uniform(-bound, bound) for _ in range(count)]).reshape(shape)


class OneDimension(nn.Module):
    """Conv1d, each with a padding of its own, and one dense layer. The embedding has the words of the vectors, in their order."""

    def __init__(self, vectors):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors.clone(), freeze=False)
        shapes = [(2, 0, 6), (3, 1, 5), (4, 3, 7)]
        self.convs = nn.ModuleList(nn.Conv1d(DIM, c, k, padding=p) for k, p, c in shapes)
        self.fc = nn.Linear(18, 3)

    def forward(self, tokens):
        vectors = self.embedding(tokens).transpose(1, 2)
        features = [F.relu(conv(vectors)).max(dim=2).values for conv in self.convs]
        return self.fc(torch.cat(features, dim=1))


class Kim(nn.Module):
    """Kim's form with Conv2d, a hidden layer, other names, and a vocabulary of its own."""

    def __init__(self, vectors):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors.clone(), freeze=False, padding_idx=0)
        self.encoder = nn.ModuleDict()
        for name, width in (("narrow", 2), ("wide", 5)):
            self.encoder[name] = nn.Conv2d(1, 8, (width, DIM), padding=(width - 1, 0))
        self.dropout = nn.Dropout(0.5)
        self.hidden = nn.Linear(16, 10)
        self.scores = nn.Linear(10, 2, bias=False)
        self.register_buffer("step", torch.zeros(1))

    def forward(self, tokens):
        vectors = self.words(tokens).unsqueeze(1)
        maps = [F.relu(conv(vectors)).squeeze(3) for conv in self.encoder.values()]
        features = torch.cat([F.max_pool1d(one, one.size(2)).squeeze(2) for one in maps], dim=1)
        return self.scores(F.relu(self.hidden(self.dropout(features))))


def train(model, vocabulary, classes):
    """A few steps, so that all weights and many of the words' vectors are trained ones."""
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if weights.dim() != 2 or weights.size(0) != len(vocabulary):
                weights.copy_(uniform(*weights.shape, bound=0.4))
    known = [index for index, word in enumerate(vocabulary) if not word.startswith("<")]
    texts = torch.tensor([[numbers.choice(known[:30]) for _ in range(9)] for _ in range(40)])
    right = torch.tensor([numbers.randrange(classes) for _ in range(40)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(model(texts), right).backward()
        optimizer.step()
    return model.eval()


def save(path, state):
    """Writes safetensors: the length of a header in JSON, the header, the tensors. (The package of that name does the same.)"""
    header, data = {}, b""
    kinds = {torch.float32: "F32", torch.bfloat16: "BF16"}
    for name, tensor in state.items():
        # numpy() does not have every type.
        own = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
        place = [len(data), len(data) + len(own)]
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
        data += own
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write(folder, name, model, vocabulary, words, arguments, shortest):
    """The state dict, and the scores of texts of `words` and some other lengths."""
    save(folder / f"{name}.safetensors", model.state_dict())
    rows = {word: row for row, word in enumerate(vocabulary)}
    cases = []
    for index in range(TEXTS):
        text = [numbers.choice(words) for _ in range(shortest + index * index // 4)]
        tokens = torch.tensor([[rows.get(word, rows.get("<unk>")) for word in text]])
        with torch.no_grad():
            cases.append({"text": " ".join(text), "scores": model(tokens)[0].tolist()})
    content = {"pytorch": torch.__version__.split("+")[0], "arguments": arguments, "cases": cases}
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    vectors = uniform(len(WORDS), DIM)
    lines = [" ".join([word, *(f"{x:.9g}" for x in row.tolist())]) for word, row in zip(WORDS, vectors)]
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n")

    model = train(OneDimension(vectors), WORDS, 3)
    arguments = ["--labels", "red,green,blue", "--padding", "0,1,3"]
    write(folder, "conv1d", model, WORDS, WORDS, arguments, 4)

    # Some of the model's words in another order, words of its own, and rows for padding and unknown words.
    own = WORDS[40:5:-1] + ["quux", "corge"]
    vocabulary = ["<pad>", "<unk>", *own]
    start = [vectors[WORDS.index(word)] if word in WORDS else uniform(DIM) for word in own]
    model = train(Kim(torch.stack([torch.zeros(DIM), uniform(DIM), *start])), vocabulary, 2)
    (folder / "kim.txt").write_text("\n".join(vocabulary) + "\n")
    arguments = ["--labels", "no,yes", "--padding", "full", "--vocabulary", "kim.txt", "--ignore", "step"]
    for known, name in (
        ("embedding", "words"),
        ("convs.0", "encoder.narrow"),
        ("convs.1", "encoder.wide"),
        ("fc1", "hidden"),
        ("fc2", "scores"),
    ):
        arguments += ["--map", f"{known}={name}"]
    write(folder, "kim", model, vocabulary, own + ["neverseen"], arguments, 1)
    # The same in bfloat16: the weights are rounded, the sums are not.
    rounded = {name: tensor.bfloat16() for name, tensor in model.state_dict().items()}
    model.load_state_dict({name: tensor.float() for name, tensor in rounded.items()})
    model.state_dict = lambda: rounded
    write(folder, "bfloat16", model, vocabulary, own, arguments, 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
