"""Clients: answers that are none of Kindred's."""

from __future__ import annotations

import numpy as np
import pytest
from clients import FROG, both, is_same
from service import answer

import kindred
from kindred.client._npy import decode, encode


def reset(connection, asked):
    import socket
    import struct

    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@both
@pytest.mark.parametrize(
    ("broken", "error", "message", "times"),
    [
        (b"", kindred.UnreachableError, "had no answer: .*is the service running", 3),
        (b"garbage\r\n\r\n", kindred.UnreachableError, "had no answer", 3),
        (lambda connection, asked: connection.sendall(FROG[:-10]), kindred.UnreachableError, "had no answer", 3),
        (lambda connection, asked: connection.sendall(FROG[:30]), kindred.UnreachableError, "had no answer", 3),
        (reset, kindred.UnreachableError, "had no answer", 3),
        (answer("<html><h1>502</h1>\n nginx", "502 Bad Gateway", "text/html"), kindred.UnavailableError,
         'status 502 and no problem document but "<html><h1>502</h1> nginx"; is a proxy in between', 1),
        (answer("<html>busy", "503 No", "text/html"), kindred.UnavailableError, "status 503.*<html>busy", 3),
        (answer("slow down", "429 No", "text/html", retry_after=0), kindred.OverloadedError, "status 429.*slow down", 3),
        (answer("<html>404", "404 Not Found", "text/html"), kindred.ServiceError, "status 404.*<html>404", 1),
        (answer("", "500 No", "text/html"), kindred.ServiceError, "status 500.*nothing", 1),
        (answer("", "401 No", "text/html"), kindred.UnauthorizedError, "status 401", 1),
        (answer('"detail"', "500 No"), kindred.ServiceError, "no problem document", 1),
        (answer('{"detail": 5, "status": 500}', "500 No"), kindred.ServiceError, "no problem document", 1),
        (answer("<html>welcome", kind="text/html"), kindred.ServiceError,
         'not with JSON as Kindred does: text/html, "<html>welcome"', 1),
        (answer("{"), kindred.ServiceError, 'not with JSON as Kindred does: application/json, "{"', 1),
        (answer("[]"), kindred.ServiceError, r'not with what was asked for.*"\[\]"', 1),
        (answer('{"neighbors":[{"word":"a"}]}'), kindred.ServiceError, "not with what was asked for", 1),
        (answer("", "302 Found", location="https://login.example/"), kindred.ServiceError,
         "a redirect to https://login.example/: set base_url", 1),
        (answer("", "304 Not Modified"), kindred.ServiceError, "status 304", 1),
        (answer(b"\x1f\x8bnot gzip", content_encoding="gzip"), kindred.ServiceError, "can't be decompressed", 1),
    ],
)  # fmt: skip
def test_what_is_not_kindreds_is_said(fake, kind, broken, error, message, times):
    server = fake(broken)
    with kind(server.url) as client, pytest.raises(error, match=message) as caught:
        client.nearest("frog")
    assert type(caught.value) is error or error is kindred.ServiceError
    assert len(server.asked) == times
    assert caught.value.request_id == server.asked[0].headers["x-request-id"]


@both
def test_no_service_at_all(kind):
    with kind("http://127.0.0.1:1") as client:
        with pytest.raises(kindred.UnreachableError, match="GET http://127.0.0.1:1/nearest had no answer: ") as caught:
            client.nearest("frog")
        assert isinstance(caught.value, ConnectionError) and caught.value.status is None
        assert client.live() is False and client.ready() is False


PICKLED = np.array([[{"a": 1}]], dtype=object)


def pickled():
    import io

    file = io.BytesIO()
    np.save(file, PICKLED, allow_pickle=True)
    return file.getvalue()


GOOD = encode(np.zeros((2, 2), [("row", "<i8"), ("score", "<f8")]))


@both
@pytest.mark.parametrize(
    "body",
    [
        pickled(), b"", b"\x93NUMPY", GOOD[:-1], GOOD + b"x", GOOD.replace(b"(2, 2)", b"(2, 3)"), GOOD.replace(b"(2, 2)", b"(4, )"),
        GOOD.replace(b"(2, 2), }      ", b"(10**9, 2), }"), GOOD.replace(b"(2, 2), }      ", b"(999999999, 2), }"),
        GOOD.replace(b"'row'", b"'raw'"), GOOD.replace(b"\x93NUMPY\x01", b"\x93NUMPY\x07"), encode(np.zeros((2, 2))),
        GOOD.replace(b"False", b"True "), GOOD.replace(b"(2, 2)", b"(-2,-2)"),
    ],
)  # fmt: skip
def test_arrays_that_are_wrong_are_refused_and_nothing_is_unpickled(fake, kind, body):
    server = fake(answer(body, kind="application/x-npy"))
    with kind(server.url) as client, pytest.raises(kindred.ServiceError, match="not with"):
        client.nearest(np.ones((2, 3)), k=2)


@both
def test_an_array_of_another_media_type_is_refused(fake, kind):
    server = fake(answer(GOOD, kind="text/html"))
    with kind(server.url) as client, pytest.raises(kindred.ServiceError, match="not with an array.*text/html"):
        client.nearest(np.ones((2, 3)), k=2)


def test_arrays_there_and_back():
    for array in (np.ones((2, 3), np.float32), np.zeros((0, 5)), np.float16([1, 2]), np.zeros((2, 1), [("row", "<i8")])):
        is_same(decode(encode(array)), array)
        import io

        is_same(np.load(io.BytesIO(encode(array))), array)
