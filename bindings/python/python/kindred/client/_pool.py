"""Connections, by httpx. This module alone imports it, and only a client that is made imports this module."""

from __future__ import annotations

import asyncio
import math
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from .._errors import KindredError
from ._settings import Settings
from ._wire import Call

MOST_CONNECTIONS = 100
# Seconds that a connection is kept without a request.
KEPT = 15.0
LIMITS = httpx.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=20, keepalive_expiry=KEPT)
# A write is cut into pieces, so that the clock is looked at between them.
WRITTEN = 1 << 18


class Pool:
    """Sends requests of any number of threads, by one pool of connections."""

    def __init__(self, settings: Settings, own: httpx.Client | None) -> None:
        self._is_ours = own is None
        self._client = own or httpx.Client(transport=_Transport(settings))

    def send(self, call: Call) -> Any:
        """The result of one attempt."""
        headers = call.begin()
        _clock.ends = call.ends
        request = self._client.build_request(
            call.method, call.url, content=call.request.body, headers=headers, timeout=_seconds(call.left)
        )
        try:
            response = self._client.send(request, stream=True, follow_redirects=False)
            try:
                pieces = []
                for piece in response.iter_bytes():
                    pieces.append(piece)
                    if call.left <= 0:
                        call.late()
            finally:
                response.close()
        except KindredError:
            raise
        except httpx.TimeoutException:
            call.late()
        except httpx.DecodingError as error:
            call.undecoded(error)
        except (httpx.RequestError, httpx.StreamError, OSError) as error:
            call.unreachable(error)
        finally:
            _clock.ends = math.inf
        return call.read(response.status_code, _names_in_lower_case(response.headers), b"".join(pieces))

    def close(self) -> None:
        if self._is_ours:
            self._client.close()


class AsyncPool:
    """Sends requests of any number of tasks of one event loop, by one pool of connections."""

    def __init__(self, settings: Settings, own: httpx.AsyncClient | None) -> None:
        self._is_ours = own is None
        verify = settings.verify if settings.base.startswith("https:") else False
        self._client = own or httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(verify=verify, limits=LIMITS))

    async def send(self, call: Call) -> Any:
        """The result of one attempt."""
        headers = call.begin()
        request = self._client.build_request(
            call.method, call.url, content=call.request.body, headers=headers, timeout=_seconds(call.left)
        )
        try:
            sent = self._client.send(request, follow_redirects=False)
            response = await asyncio.wait_for(sent, _seconds(call.left))
        except (httpx.TimeoutException, asyncio.TimeoutError):
            call.late()
        except httpx.DecodingError as error:
            call.undecoded(error)
        except (httpx.RequestError, httpx.StreamError, OSError) as error:
            call.unreachable(error)
        return call.read(response.status_code, _names_in_lower_case(response.headers), response.content)

    async def close(self) -> None:
        if self._is_ours:
            await self._client.aclose()


def _names_in_lower_case(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _seconds(left: float) -> float | None:
    return None if left == math.inf else max(left, 0.001)


class _Clock(threading.local):
    """When the call of this thread ends. httpx gives each read the same time, so a slow service could take any time in all."""

    ends: float = math.inf

    def left(self, error: type[Exception]) -> float | None:
        if self.ends == math.inf:
            return None
        left = self.ends - time.monotonic()
        if left <= 0:
            raise error("the time is over")
        return left


_clock = _Clock()


class _Transport(httpx.HTTPTransport):
    """httpx's transport over connections that keep to the clock."""

    def __init__(self, settings: Settings) -> None:
        is_tls = settings.base.startswith("https:")
        super().__init__(verify=False)
        context = httpx.create_ssl_context(verify=settings.verify) if is_tls else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=MOST_CONNECTIONS,
            max_keepalive_connections=LIMITS.max_keepalive_connections,
            keepalive_expiry=KEPT,
            network_backend=_Network(),
        )


class _Network(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:  # fmt: skip
        left = _clock.left(httpcore.ConnectTimeout)
        return _Stream(self._inner.connect_tcp(host, port, left, local_address, socket_options))


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _clock.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITTEN):
            self._inner.write(buffer[start : start + WRITTEN], _clock.left(httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _clock.left(httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def close(self) -> None:
        self._inner.close()
