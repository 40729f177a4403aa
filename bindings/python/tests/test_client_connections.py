"""Clients: settings, connections, processes, and the page about them."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from clients import FROG, TOAD, both
from service import Service

import kindred


def test_the_options_are_the_models():
    from kindred import _kindred
    from kindred.client import _options

    assert set(_options.READERS) == {values for values, _, _ in _kindred.OPTIONS.values()}
    for kind in (kindred.Client, kindred.AsyncClient):
        assert inspect.signature(kind.nearest).parameters["k"].default == _kindred.DEFAULT_K


def test_pauses_are_random_and_bounded():
    from kindred.client._settings import checked
    from kindred.client._wire import Call, Request

    settings = checked("http://a", model=None, api_key=None, timeout=None, retries=10, max_retry_after=10, parallel=1, verify=True)
    for attempts, longest in ((1, 0.2), (2, 0.4), (10, 5.0)):
        call = Call(settings, Request("/nearest", lambda answer: None), float("inf"), attempts)
        plain = [call.pause_after(kindred.UnreachableError()) for _ in range(200)]
        told = [call.pause_after(kindred.OverloadedError(status=429, retry_after=2)) for _ in range(200)]
        assert 0 <= min(plain) < longest / 4 and 3 * longest / 4 < max(plain) <= longest
        assert 2 <= min(told) and max(told) <= 2 + longest


@both
@pytest.mark.parametrize("timeout", [None, 1e300, float("inf"), 10**7])
def test_a_timeout_may_be_endless(fake, kind, timeout):
    server = fake(FROG)
    with kind(server.url, timeout=timeout) as client:
        assert client.nearest("frog", k=None) == client.nearest("frog", timeout_ms=2**63 - 1) == TOAD
    assert "request-timeout-ms" not in server.asked[0].headers


def test_a_client_can_be_pickled(fake):
    server = fake(FROG)
    with kindred.Client(server.url, model="m", api_key="secret", retries=0) as client:
        with pickle.loads(pickle.dumps(client)) as again:
            assert again.nearest("frog") == TOAD and again._settings == client._settings


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    import shutil

    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "certificate.pem"]  # fmt: skip
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder


@both
def test_https(fake, kind, certificate):
    import ssl

    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    server = fake(FROG, FROG, lambda connection, asked: time.sleep(3))
    server.context = ours
    url = f"https://localhost:{server.listener.getsockname()[1]}"
    theirs = ssl.create_default_context(cafile=certificate / "certificate.pem")
    with kind(url, verify=theirs, timeout=0.5) as client:
        assert client.nearest("frog") == client.nearest(np.ones(3)) == TOAD
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.nearest("frog")
        assert time.monotonic() - start < 0.9
    start = time.monotonic()
    with kind(url, retries=10) as client, pytest.raises(kindred.UnreachableError, match="certificate.*SSL_CERT_FILE") as caught:
        client.nearest("frog")
    # It does not pass, so it is not tried again.
    assert not caught.value.is_passing and time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("keywords", "field"),
    [
        (dict(base_url="127.0.0.1:80"), "base_url"), (dict(base_url="ftp://a"), "base_url"), (dict(base_url="http://"), "base_url"),
        (dict(base_url="http://a:b@c"), "base_url"), (dict(base_url="http://a?b"), "base_url"), (dict(base_url=None), "base_url"),
        (dict(base_url="http://[::1"), "base_url"), (dict(model=""), "model"), (dict(model=".."), "model"),
        (dict(api_key="a b"), "api_key"), (dict(api_key="a\r\nb"), "api_key"), (dict(api_key=""), "api_key"),
        (dict(timeout=0), "timeout"), (dict(timeout=-1), "timeout"), (dict(timeout=float("nan")), "timeout"),
        (dict(timeout="1"), "timeout"), (dict(retries=-1), "retries"), (dict(retries=1.5), "retries"),
        (dict(retries=True), "retries"), (dict(max_retry_after=-1), "max_retry_after"), (dict(parallel=0), "parallel"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_named(keywords, field):
    for kind in (kindred.Client, kindred.AsyncClient):
        with pytest.raises(kindred.InvalidValueError, match=f"`{field}` must be") as caught:
            kind(**{"base_url": "http://localhost:1", **keywords})
        assert caught.value.field == field


@both
def test_a_closed_client_says_so(fake, kind):
    with kind(fake(FROG).url) as client:
        assert client.nearest("frog") == TOAD
        client.close()
        with pytest.raises(ValueError, match="closed"):
            client.nearest("frog")


def test_connections_are_used_again(fake):
    server = fake(FROG)
    with kindred.Client(server.url) as client:
        for _ in range(20):
            client.nearest("frog")
    assert len(server.asked) == 20 and len(server.sockets) == 1


def test_an_httpx_client_of_ones_own(fake):
    import httpx

    seen = []

    def respond(request):
        seen.append(request)
        return httpx.Response(200, json={"neighbors": [{"word": "toad", "score": 0.5, "row": 3}]})

    own = httpx.Client(transport=httpx.MockTransport(respond))
    with kindred.Client("http://kindred.example", http_client=own) as client:
        assert client.nearest("frog", k=1) == TOAD
    assert str(seen[0].url) == "http://kindred.example/nearest?word=frog&k=1" and not own.is_closed

    async def ask():
        async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as own:
            async with kindred.AsyncClient("http://kindred.example", http_client=own) as client:
                return await asyncio.gather(*(client.nearest("frog", k=1) for _ in range(5)))

    assert asyncio.run(ask()) == [TOAD] * 5


def test_a_cancelled_task_ends_its_requests(fake):
    ended = threading.Event()

    def wait(connection, asked):
        # The other side closes.
        if connection.recv(1) == b"":
            ended.set()

    server = fake(wait)

    async def ask():
        async with kindred.AsyncClient(server.url) as client:
            task = asyncio.ensure_future(client.nearest(np.ones((5000, 2), np.float32)))
            while not server.asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(ask())
    assert ended.wait(2) and len(server.asked) <= 2


def test_httpx_is_needed_only_by_clients():
    program = """
import sys
sys.modules["httpx"] = None
import kindred
from kindred import *
assert Client is kindred.Client
for kind in (Client, AsyncClient):
    try:
        kind("http://localhost")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["clients need httpx: pip install 'kindred-vectors[client]', or pip install httpx"] * 2


def test_the_page_about_clients(service, tmp_path, request):
    import pathlib
    import re

    page = pathlib.Path(__file__).parents[3] / "docs" / "python-client.md"
    if not page.is_file():
        pytest.skip("the page is in the repository only")
    examples = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(examples) == 4
    tables = Service("--models-dir", str(tmp_path))
    request.addfinalizer(tables.stop)
    for example in examples:
        promised = "".join(f"{line[2:]}\n" for line in example.splitlines() if line.startswith("# "))
        url = tables.url if "create_model" in example else service.url
        program = example.replace("http://127.0.0.1:8080", url)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.stderr, done.stdout) == ("", promised)
