"""Clients: what is sent, how often, and for how long."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from clients import FROG, TOAD, both
from service import answer, problem

import kindred
from kindred.client._npy import decode, encode

# Requests


@both
def test_what_is_sent(fake, kind):
    server = fake(FROG)
    with kind(server.url + "/prefix/", model="a/b é", api_key="secret", timeout=5) as client:
        assert client.nearest("a+b &%é", k=1, exclude=["x y", "z"]) == TOAD
        client.nearest_text("word " * 500)
        client.nearest(np.ones(3), k=2)
    word, text, vector = server.asked
    path = "/prefix/models/a%2Fb%20%C3%A9/nearest"
    assert (word.method, word.target) == ("GET", f"{path}?word=a%2Bb%20%26%25%C3%A9&exclude=x%20y&exclude=z&k=1") or (
        word.target == f"{path}?word=a%2Bb%20%26%25%C3%A9&k=1&exclude=x%20y&exclude=z"
    )
    assert word.headers["authorization"] == "Bearer secret" and word.headers["accept"] == "application/json"
    assert 4000 < int(word.headers["request-timeout-ms"]) <= 5000
    assert "content-type" not in word.headers
    assert (text.method, text.target, text.headers["content-type"]) == ("POST", path, "application/json")
    assert json.loads(text.body) == {"text": "word " * 500, "k": 10}
    assert (vector.method, vector.target, vector.headers["content-type"]) == ("POST", f"{path}?k=2", "application/x-npy")
    assert decode(vector.body).tolist() == [1, 1, 1] and decode(vector.body).dtype == np.float32
    assert len({asked.headers["x-request-id"] for asked in server.asked}) == 3


def array_of(asked, k=2, kind="application/x-npy"):
    sent = decode(asked.body)
    found = np.zeros((len(sent), k), [("row", "<i8"), ("score", "<f8")])
    found["row"] = sent[:, :1]
    return answer(encode(found), kind=kind)


@both
def test_batches_are_cut_and_sent_several_at_once(fake, kind):
    def slowly(connection, asked):
        # The first is the slowest: the order of answers is not that of the rows.
        time.sleep(0.3 if decode(asked.body)[0, 0] == 0 else 0.02)
        return array_of(asked)

    server = fake(slowly)
    vectors = np.repeat(np.arange(10_000, dtype=np.float32)[:, None], 2, axis=1)
    with kind(server.url, parallel=3) as client:
        found = client.nearest(vectors, k=2)
    assert found.indices[:, 0].tolist() == list(range(10_000))
    assert sorted(len(decode(asked.body)) for asked in server.asked) == [784] + [1024] * 9
    assert server.most_under_way == 3


@both
def test_the_first_error_of_a_batch_in_order_ends_it(fake, kind):
    def some(connection, asked):
        first = int(decode(asked.body)[0, 0])
        time.sleep(0.2 if first == 1024 else 0)
        if first in (1024, 2048):
            return problem(422, "zero_query", f"`queries[{first // 1024}]`: zero; an .npy answer has no place", query=first // 1024)
        return array_of(asked)

    server = fake(some)
    with kind(server.url, parallel=2) as client, pytest.raises(kindred.ZeroVectorError, match="^vector 1025: zero$") as caught:
        client.nearest(np.repeat(np.arange(20_000, dtype=np.float32)[:, None], 2, axis=1), k=2)
    assert caught.value.query == 1025 and len(server.asked) <= 4


# Attempts


@both
@pytest.mark.parametrize("refusal", [problem(429, "queue_full", retry_after=1), problem(503, "engine_restarting", retry_after=1)])
def test_a_refusal_is_asked_again_after_its_time(fake, kind, refusal):
    server = fake(refusal, FROG)
    with kind(server.url) as client:
        start = time.monotonic()
        assert client.nearest(np.ones(2)) == TOAD
    assert 1 <= time.monotonic() - start < 3
    first, second = server.asked
    assert first.headers["x-request-id"] == second.headers["x-request-id"]
    assert first.body == second.body
    assert int(second.headers["request-timeout-ms"]) <= int(first.headers["request-timeout-ms"]) - 900


@both
def test_a_refusal_without_a_time_is_asked_again(fake, kind):
    server = fake(problem(503, "draining"), b"", FROG)
    with kind(server.url) as client:
        start = time.monotonic()
        assert client.nearest("frog") == TOAD
    assert time.monotonic() - start < 2 and len(server.asked) == 3


@both
def test_attempts_are_bounded(fake, kind):
    server = fake(problem(429, "queue_full", "the queue is full", retry_after=0))
    with kind(server.url, retries=3) as client, pytest.raises(kindred.OverloadedError, match="the queue is full") as caught:
        client.nearest("frog")
    assert (len(server.asked), caught.value.retry_after, caught.value.status, caught.value.code) == (4, 0, 429, "queue_full")
    assert caught.value.request_id == server.asked[0].headers["x-request-id"]
    with kind(server.url, retries=0) as client, pytest.raises(kindred.OverloadedError):
        client.nearest("frog")
    assert len(server.asked) == 5


def in_a_minute():
    from email.utils import formatdate

    return formatdate(time.time() + 60, usegmt=True)


@both
@pytest.mark.parametrize("retry_after", [lambda: "11", lambda: "999999999", in_a_minute])
def test_nobody_waits_longer_than_max_retry_after(fake, kind, retry_after):
    server = fake(problem(503, "engine_restarting", retry_after=retry_after()))
    with kind(server.url, timeout=None) as client:
        start = time.monotonic()
        with pytest.raises(kindred.UnavailableError) as caught:
            client.nearest("frog")
    assert time.monotonic() - start < 1 and len(server.asked) == 1 and caught.value.retry_after > 10
    assert "request-timeout-ms" not in server.asked[0].headers


@both
def test_nobody_waits_past_the_timeout(fake, kind):
    server = fake(problem(429, "queue_full", retry_after=3))
    with kind(server.url, timeout=1) as client:
        start = time.monotonic()
        # The refusal says more than the deadline that would pass.
        with pytest.raises(kindred.OverloadedError):
            client.nearest("frog")
    assert time.monotonic() - start < 1 and len(server.asked) == 1


@both
@pytest.mark.parametrize(
    "what", [problem(429, "queue_full", retry_after=0), problem(503, "draining"), b""], ids=["429", "503", "reset"]
)
def test_reload_and_probes_are_sent_once(fake, kind, what):
    server = fake(what)
    with kind(server.url) as client:
        with pytest.raises(kindred.KindredError):
            client.reload()
        assert len(server.asked) == 1 and server.asked[0].method == "POST" and server.asked[0].target == "/admin/reload"
        assert client.live() is False and client.ready() is False
    assert len(server.asked) == 3


@both
@pytest.mark.parametrize("code", [400, 404, 408, 413, 422, 500, 504])
def test_other_errors_are_not_asked_again(fake, kind, code):
    server = fake(problem(code, "something"))
    with kind(server.url) as client, pytest.raises(kindred.KindredError) as caught:
        client.nearest("frog")
    assert (len(server.asked), caught.value.status) == (1, code)


# Time


def drip(data):
    """Sends bytes so slowly that no single read takes long."""

    def send(connection, asked):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    return send


SILENT = [
    lambda connection, asked: time.sleep(3),
    drip(FROG),
    drip(answer(b" " * 500)[:-490]),
    lambda connection, asked: (connection.sendall(FROG[:-5]), time.sleep(3)) and None,
]


@both
@pytest.mark.parametrize("silent", SILENT, ids=["silent", "slow headers", "slow body", "stopped body"])
def test_the_timeout_is_kept_whatever_the_service_does(fake, kind, silent):
    server = fake(silent)
    with kind(server.url, timeout=0.4) as client:
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError, match="had no answer in time .sent once.; raise `timeout`") as caught:
            client.nearest("frog")
        took = time.monotonic() - start
        assert 0.35 < took < 0.8
        assert isinstance(caught.value, TimeoutError) and caught.value.request_id
        # The option of a call takes the place of the client's.
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.nearest(np.ones(2), timeout_ms=150)
        assert 0.1 < time.monotonic() - start < 0.5


@both
def test_a_service_that_does_not_read_is_left(kind):
    import socket

    # The system accepts the connection and some of the body; nobody reads it.
    listener = socket.create_server(("127.0.0.1", 0))
    with kind(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.4) as client:
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.expand(np.ones((20_000, 300), np.float32))
        assert time.monotonic() - start < 1
    listener.close()


@both
def test_attempts_share_one_timeout(fake, kind):
    def late_refusal(connection, asked):
        time.sleep(0.3)
        return problem(503, "draining")

    server = fake(late_refusal)
    with kind(server.url, timeout=1, retries=10) as client:
        start = time.monotonic()
        with pytest.raises((kindred.DeadlineError, kindred.UnavailableError)):
            client.nearest("frog")
    assert time.monotonic() - start < 1.4 and 2 <= len(server.asked) <= 4


@both
def test_the_time_limit_of_a_call_is_for_all_its_requests(fake, kind):
    def slowly(connection, asked):
        time.sleep(0.2)
        # A client whose time is over may not send the whole body.
        whole = len(asked.body) == int(asked.headers.get("content-length", 0))
        return array_of(asked) if whole else problem(400, "not_npy")

    server = fake(slowly)
    vectors = np.ones((20_000, 2), np.float32)
    with kind(server.url) as client:
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.nearest(vectors, k=2, timeout_ms=700)
        assert time.monotonic() - start < 1.2
    # The client's is for each.
    with kind(server.url, timeout=1, parallel=4) as client:
        start = time.monotonic()
        client.nearest(vectors[:8192], k=2)
        assert time.monotonic() - start < 3


def test_the_services_504_is_a_deadline(fake):
    server = fake(problem(504, "deadline_passed", "too late"))
    with kindred.Client(server.url) as client, pytest.raises(kindred.DeadlineError, match="too late") as caught:
        client.nearest("frog")
    assert (caught.value.status, caught.value.code) == (504, "deadline_passed")
