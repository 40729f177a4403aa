"""Ray Data and pyarrow, or how to get them."""

from __future__ import annotations

try:
    import pyarrow  # noqa: F401
    import ray.data  # noqa: F401
except ImportError as error:
    raise ImportError("kindred.ray needs Ray Data: pip install 'kindred-vectors[ray]', or pip install 'ray[data]'") from error
