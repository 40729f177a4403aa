"""What reaches a replica of a request's head, what the balancers keep to themselves, and what becomes of a 429."""

import asyncio
import concurrent.futures
import http.client
import json
import uuid

import echo
from balancers import HOSTS, free_port

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ID = "a-client-s-own-id-7"


async def check(kind, program, scratch):
    """What failed, in words."""
    return [
        *await check_with(kind, program, scratch, HOSTS, ask),
        *await check_with(kind, program, scratch / "two", HOSTS[:2], ask_beside_one_that_refuses),
    ]


async def check_with(kind, program, scratch, hosts, ask):
    port = free_port(*hosts)
    servers = [await echo.serve(host, port) for host in hosts]
    balancer = kind(program, scratch, port)
    balancer.configure(hosts)
    balancer.start()
    try:
        await asyncio.to_thread(balancer.wait_answers)
        await asyncio.to_thread(ask, balancer.address)
        return []
    except AssertionError as error:
        return [f"{balancer.name}, headers: {error}"]
    finally:
        await asyncio.to_thread(balancer.stop)
        for server in servers:
            server.close()


def ask(address):
    def head(method="GET", target="/nearest?word=a%2Fb", body=None, **headers):
        connection = http.client.HTTPConnection(*address, timeout=30)
        connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status == 429:
            return answer.status, (answer.getheader("retry-after"), text)
        return answer.status, dict(json.loads(text)) if answer.status == 200 else text

    status, found = head(x_request_id=ID, traceparent=TRACE, tracestate="vendor=1", authorization="Bearer key")
    assert status == 200, status
    for name, value in (("x-request-id", ID), ("traceparent", TRACE), ("tracestate", "vendor=1")):
        assert found.get(name) == value, f"{name} is kept: {found}"
    assert found["authorization"] == "Bearer key" and found[":path"] == "/nearest?word=a%2Fb", found
    assert "x-forwarded-for" in found, found
    status, found = head("POST", "/nearest", b" " * 65536, content_type="application/json")
    assert status == 200 and found[":method"] == "POST" and found["content-length"] == "65536", found
    uuid.UUID(found["x-request-id"])
    assert "traceparent" not in found, "the balancer takes part in no trace of its own"
    for target in ("/metrics", "/admin/reload"):
        status, text = head("POST" if "admin" in target else "GET", target)
        assert status == 404, f"{target} is not for clients: {status} {text}"
    for body in (None, b"{}"):
        method = "GET" if body is None else "POST"
        for host in HOSTS * 8:
            status, said = head(method, f"/nearest?full={host}", body)
            assert status == 200, f"what {host} refuses is asked of another: {status} {said}"
        refused = head(method, "/nearest?full=all", body)
        assert refused == (429, ("7", b'{"code": "queue_full"}')), f"the answer of full replicas arrives as it is: {refused}"


def ask_beside_one_that_refuses(address, clients=24, requests=150):
    """One of two replicas refuses at once, as one whose engine restarts does. So it always has the fewest requests in progress, and balancers
    would choose it for every try."""

    def one(_):
        connection, failed = http.client.HTTPConnection(*address, timeout=30), 0
        for _ in range(requests):
            connection.request("GET", f"/nearest?take=10&full={HOSTS[0]}")
            answer = connection.getresponse()
            answer.read()
            failed += answer.status != 200
        connection.close()
        return failed

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        failed = sum(pool.map(one, range(clients)))
    assert failed == 0, f"{failed} of {clients * requests} requests were not asked of the other replica"
