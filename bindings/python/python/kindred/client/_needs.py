"""httpx, or how to get it."""

from __future__ import annotations

from types import ModuleType


def needed() -> ModuleType:
    """The module that sends; ImportError with the cure if httpx is missing."""
    try:
        import httpx  # noqa: F401
    except ImportError as error:
        raise ImportError("clients need httpx: pip install 'kindred-vectors[client]', or pip install httpx") from error
    from . import _pool

    return _pool
