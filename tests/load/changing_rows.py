"""The rows of `soak-rows`, and the contract's formula over them. Each group of rows is one writer's, who changes all its
rows in one batch, so the number of its last change says which rows of it there are, and which vectors they have."""

import functools
import math
import random
import struct

DIM = 32
# Rows of a group.
MEMBERS = 4
# Each fifth change of a group deletes its rows.
DELETES = 5


def lives(change):
    """Whether a group has rows after its change of this number; there is none before the first."""
    return change > 0 and change % DELETES != 0


def key(group, member):
    return f"g{group}-{member}"


@functools.lru_cache(maxsize=40_000)
def vector(group, member, change):
    """As float32, so that JSON and the table have the same numbers."""
    seeded = random.Random(f"{group}/{member}/{change}")
    return as_float32([seeded.uniform(-1, 1) for _ in range(DIM)])


def as_float32(components):
    return struct.unpack(f"<{DIM}f", struct.pack(f"<{DIM}f", *components))


def row(group, member, change):
    attributes = {"g": group, "n": change}
    return {"key": key(group, member), "vector": vector(group, member, change), "attributes": attributes}


def dot(a, b):
    """With a component in each of 32 lanes, which fold by 16, 8, 4, 2, 1. The product of two float32 is exact."""
    lanes = [x * y for x, y in zip(a, b)]
    step = DIM // 2
    while step:
        lanes = [lanes[i] + lanes[i + step] for i in range(step)]
        step //= 2
    return lanes[0]


@functools.lru_cache(maxsize=40_000)
def norm(of):
    return math.sqrt(dot(of, of))


def score(query, of):
    return max(-1.0, min(1.0, dot(query, of) / (norm(query) * norm(of))))


class Wrong(Exception):
    """An answer that goes against what was acknowledged, or against the formula."""


def insist(holds, text):
    if not holds:
        raise Wrong(text)


def of_neighbor(neighbor):
    """The group, member and change of a neighbour, by its key and attributes."""
    group, member = (int(part) for part in neighbor["word"][1:].split("-"))
    insist(neighbor["attributes"]["g"] == group, f"{neighbor['word']} has the attributes of another row")
    return group, member, neighbor["attributes"]["n"]


def check_neighbors(neighbors, query, least, most):
    """Each is a row that was there between these changes, with the score of the formula, of whole batches, and in
    order."""
    changes, seen, before = {}, set(), None
    for neighbor in neighbors:
        group, member, change = of_neighbor(neighbor)
        text = f"{key(group, member)} of change {change}, between {least[group]} and {most[group]}"
        insist(least[group] <= change <= most[group] and lives(change), text)
        insist(changes.setdefault(group, change) == change, f"half a batch: {text}")
        insist((group, member) not in seen, f"twice: {text}")
        seen.add((group, member))
        must = score(query, vector(group, member, change))
        insist(neighbor["score"] == must, f"{text}: the score is {neighbor['score']!r}, not {must!r}")
        place = (-must, neighbor["row"])
        insist(before is None or before < place, f"{text}: not in order")
        before = place


def check_pages(rows, least, most):
    """All rows of a table at one position: each group's change is one between these, and all its rows are there."""
    found = {}
    for one in rows:
        group, member, change = of_neighbor({"word": one["key"], "attributes": one["attributes"]})
        found.setdefault(group, []).append((member, change))
    for group, (low, high) in enumerate(zip(least, most)):
        rows = sorted(found.get(group, []))
        text = f"group {group} has {rows}, between {low} and {high}"
        if rows:
            change = rows[0][1]
            insist(rows == [(member, change) for member in range(MEMBERS)], text)
            insist(low <= change <= high and lives(change), text)
        else:
            insist(any(not lives(change) for change in range(low, high + 1)), text)


def best(query, changes, k):
    """The neighbours among all rows there are: keys and scores."""
    groups = [(group, change) for group, change in enumerate(changes) if lives(change)]
    members = ((group, member, change) for group, change in groups for member in range(MEMBERS))
    scored = [(-score(query, vector(*one)), key(one[0], one[1])) for one in members]
    return [(name, -negative) for negative, name in sorted(scored)[:k]]
