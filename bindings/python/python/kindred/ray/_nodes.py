"""The nodes of the cluster: their names in messages, and how many workers fit."""

from __future__ import annotations

import socket
from typing import Any

import ray

from .._errors import InvalidValueError


def here() -> str:
    """This node, as a person finds it."""
    return f"node {socket.gethostname()} ({ray.util.get_node_ip_address()})"


def connect() -> None:
    """Connects to the cluster, as Ray does by itself, or starts Ray on this machine."""
    if not ray.is_initialized():
        ray.init()


def fitting(cpus: float, gpus: float) -> int:
    """How many workers the nodes that are alive can hold.

    Raises:
        InvalidValueError: there is room for none.
    """
    count = 0
    most: dict[str, float] = {"CPU": 0, "GPU": 0}
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        has: dict[str, Any] = node["Resources"]
        parts = [has.get(name, 0) / wanted for name, wanted in (("CPU", cpus), ("GPU", gpus)) if wanted]
        count += int(min(parts) + 1e-9) if parts else 1
        most = {name: max(most[name], has.get(name, 0)) for name in most}
    if count == 0:
        message = (
            f"no node has room for a worker of {cpus:g} CPUs and {gpus:g} GPUs: the largest have {most['CPU']:g} CPUs and {most['GPU']:g} "
            "GPUs; give fewer `cpus` or `gpus`"
        )
        raise InvalidValueError(message, field="gpus" if most["GPU"] < gpus else "cpus")
    return count
