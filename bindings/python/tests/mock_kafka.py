"""librdkafka's mock cluster, in this process: brokers that speak Kafka's protocol, whose partitions are in memory. It has no compaction,
no authentication and no identities of topics."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import confluent_kafka
import pytest


def _library():
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    for found in folder.glob("librdkafka-*.so*"):
        library = ctypes.CDLL(str(found))
        if hasattr(library, "rd_kafka_mock_cluster_new"):
            return library
    pytest.skip("this librdkafka has no mock cluster")


class Kafka:
    """A cluster of three brokers."""

    BROKERS = 3

    def __init__(self):
        self._library = library = _library()
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(library, name).restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        said = ctypes.create_string_buffer(512)
        self._handle = library.rd_kafka_new(0, ctypes.c_void_p(library.rd_kafka_conf_new()), said, 512)
        assert self._handle, said.value
        self._cluster = library.rd_kafka_mock_cluster_new(ctypes.c_void_p(self._handle), self.BROKERS)
        self.brokers = library.rd_kafka_mock_cluster_bootstraps(ctypes.c_void_p(self._cluster)).decode()
        self._producer = confluent_kafka.Producer({"bootstrap.servers": self.brokers, "linger.ms": 0, "log_level": 0, "enable.idempotence": True})

    def call(self, name, *arguments):
        """A function of the mock cluster."""
        given = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
        given = [ctypes.c_int64(one) if isinstance(one, int) and name.endswith("delete_records") else one for one in given]
        return getattr(self._library, f"rd_kafka_mock_{name}")(ctypes.c_void_p(self._cluster), *given)

    def topic(self, name, partitions=1):
        """Makes a topic, and returns its address."""
        assert self.call("topic_create", name, partitions, 1) == 0
        return f"kafka://{self.brokers}/{name}"

    def send(self, topic, key, value, partition=None):
        """A message; a value that is no bytes becomes JSON, None a tombstone."""
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        where = {} if partition is None else {"partition": partition}
        # Without a key, any partition.
        self._producer.produce(topic, raw, key.encode() if isinstance(key, str) else key, **where)

    def sent(self):
        """Returns when all messages have arrived."""
        assert self._producer.flush(30) == 0

    def close(self):
        self._producer.flush(1)
        self._library.rd_kafka_mock_cluster_destroy(ctypes.c_void_p(self._cluster))
        self._library.rd_kafka_destroy(ctypes.c_void_p(self._handle))
