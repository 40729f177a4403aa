"""The kinds of client, an answer for them, and whether two results are the same."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from service import answer

import kindred

FROG = answer('{"model":"m","version":"v","neighbors":[{"word":"toad","score":0.5,"row":3}]}')
TOAD = [kindred.Neighbor("toad", 0.5, 3)]


class Awaited:
    """An `AsyncClient` whose methods wait, so that it is used as the others are."""

    def __init__(self, *arguments, **keywords):
        self._loop = asyncio.new_event_loop()
        self._client = kindred.AsyncClient(*arguments, **keywords)

    def __getattr__(self, name):
        method = getattr(self._client, name)
        if name == "rows":
            return lambda **keywords: self._loop.run_until_complete(_all(method(**keywords)))
        if name == "after":
            return self._after
        return lambda *arguments, **keywords: self._loop.run_until_complete(method(*arguments, **keywords))

    def _after(self, change):
        same = object.__new__(Awaited)
        same._loop, same._client = self._loop, self._client.after(change)
        return same

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self._loop.close()


async def _all(rows):
    return [row async for row in rows]


KINDS = [kindred.Client, Awaited]
both = pytest.mark.parametrize("kind", KINDS, ids=["sync", "async"])


def is_same(found, expected):
    """Equal to the bit, with the same types."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, kindred.Neighbors):
        [is_same(*pair) for pair in zip(found, expected)]
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        [is_same(*pair) for pair in zip(found, expected)]
    else:
        assert found == expected
