"""Clients of a service: `Client` for threads, `AsyncClient` for asyncio. They have the methods of `kindred.Model`."""

from ._async import AsyncClient
from ._sync import Client

__all__ = ["AsyncClient", "Client"]
