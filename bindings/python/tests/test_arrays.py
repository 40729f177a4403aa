"""Whose memory a model over an array uses."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from conftest import DEVICE

import kindred
from kindred._arrays import frozen, is_read_only


def read_only(array):
    array.flags.writeable = False
    return array


def test_an_array_that_can_change_is_copied():
    array = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    model = kindred.from_array(array, device=DEVICE)
    before = model.nearest_rows(3, k=5)
    array[:] = 0
    assert model.nearest_rows(3, k=5) == before
    assert not np.shares_memory(model.vectors, array)


def test_an_array_that_nobody_can_change_is_shared(tmp_path):
    array = read_only(np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32))
    model = kindred.from_array(array, device=DEVICE)
    assert np.shares_memory(model.vectors, array)
    np.save(tmp_path / "array.npy", array)
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    of_file = kindred.from_array(mapped, device=DEVICE)
    assert np.shares_memory(of_file.vectors, mapped)
    expected = model.nearest_rows(3, k=5)
    del array, mapped
    assert of_file.nearest_rows(3, k=5) == model.nearest_rows(3, k=5) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.ones((4, 3), np.float32),
        lambda: read_only(np.ones((4, 3), np.float32)[:, :]),
        lambda: read_only(np.ones((4, 3), np.float64)),
        lambda: read_only(np.ones((4, 3), np.float16)),
        lambda: read_only(np.ones((4, 3), ">f4")),
        lambda: read_only(np.ones((4, 6), np.float32))[:, ::2],
        lambda: read_only(np.asfortranarray(np.ones((4, 3), np.float32))),
        lambda: np.frombuffer(bytearray(48), np.float32).reshape(4, 3),
        lambda: read_only(np.frombuffer(bytearray(48), np.float32).reshape(4, 3)),
        lambda: read_only(np.frombuffer(mmap.mmap(-1, 48), np.float32).reshape(4, 3)),
        lambda: read_only(np.frombuffer(bytes(52), np.uint8)[1:49].view(np.float32).reshape(4, 3)),
    ],
    ids=[
        "writeable", "view of writeable", "float64", "float16", "big-endian", "strided", "fortran", "bytearray", "read-only bytearray",
        "shared memory", "not aligned",
    ],
)  # fmt: skip
def test_everything_else_is_copied(make):
    array = make()
    copy = frozen(array)
    assert copy.dtype == np.float32 and copy.flags.c_contiguous and not copy.flags.writeable and copy.base is None
    assert not np.shares_memory(copy, array)
    assert np.array_equal(copy, array)


def test_read_only_means_all_the_way_down():
    array = np.ones((4, 3), np.float32)
    view = read_only(array[:])
    assert not is_read_only(view)
    assert is_read_only(read_only(np.ones(3)))
    assert is_read_only(np.frombuffer(bytes(12), np.float32))
