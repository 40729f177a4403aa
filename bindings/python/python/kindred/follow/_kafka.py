"""A topic of Kafka: messages whose keys are the rows' keys, and whose values are objects of JSON, or nothing for a deletion.

All partitions are read by one follower, which is assigned them by itself: there is no consumer group, so nothing is rebalanced, and
offsets are stored in the table alone.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from ._batch import Row
from ._errors import BadRow, FollowError, Stopped
from ._log import MOST_SOURCES, Record
from ._records import Fields, key_of, parse
from ._target import LONGEST_PAUSE, say

# Messages taken at once.
AT_ONCE = 2000
# A wait for the next message, and for an answer of the brokers, in seconds.
PAUSE, PATIENCE = 0.05, 10.0
# The topic's partitions are counted that often, in seconds.
LOOK_EVERY = 10.0
# A topic that is compacted keeps deletions for so long, unless it says otherwise, in seconds.
KEPT = 86_400.0

PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE)
PASSING_METADATA = (
    KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.BROKER_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION, KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
)  # fmt: skip


class Kafka:
    """The messages of a topic. The position of a partition is the offset of the next message."""

    unit = "messages"

    def __init__(self, address: str, key: str | None, config: str | None, should_stop: Any) -> None:
        """`address`: ``kafka://host:9092,host:9092/topic``. `config`: a file of librdkafka's settings, ``name=value`` in each line."""
        parts = urlsplit(address)
        self.topic = unquote(parts.path.strip("/"))
        if not parts.netloc or not self.topic or "@" in parts.netloc:
            raise FollowError("the address of a topic is kafka://HOST:PORT[,HOST:PORT]/TOPIC; names and passwords are in --kafka-config")
        self.prefix = f"kafka/{self.topic}/"
        self.key, self._should_stop = key, should_stop
        settings = {"bootstrap.servers": parts.netloc, **(_settings(config) if config else {})}
        # Its own messages would go to standard error, several a second.
        common: dict[str, Any] = {**settings, "log_level": 2, "error_cb": self._error, "allow.auto.create.topics": False}
        try:
            self._admin = AdminClient(common)
            self._consumer = Consumer({
                # librdkafka requires a name. No offset is stored under it.
                "group.id": "kindred-follow", "queued.max.messages.kbytes": 65_536, "fetch.wait.max.ms": 100, **common,
                "enable.auto.commit": False, "enable.auto.offset.store": False, "auto.offset.reset": "error", "enable.partition.eof": True,
            })  # fmt: skip
        except KafkaException as error:
            raise FollowError(f"the settings of Kafka are wrong: {error.args[0].str()}") from None
        self._reached: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._looked_at = self._complained_at = 0.0
        self._id = 0
        self._kept = KEPT

    # Brokers

    def _error(self, error: KafkaError) -> None:
        """The brokers can't be reached, or refuse who asks; librdkafka goes on trying."""
        now = time.monotonic()
        if now - self._complained_at > 30.0:
            self._complained_at = now
            say(f"Kafka: trying again: {error.str()}")

    def _ask(self, ask: Any) -> Any:
        """The brokers' answer, whenever they have one."""
        pause, is_told = 0.1, False
        while True:
            try:
                return ask()
            except KafkaException as error:
                reason = error.args[0]
                if not _passes(reason):
                    raise FollowError(said(error)) from None
                if not is_told:
                    say(f"no answer of Kafka; trying again: {reason.str()}")
                    is_told = True
            ends = time.monotonic() + pause
            while time.monotonic() < ends:
                if self._should_stop():
                    raise Stopped("stopped while Kafka did not answer; started again, it goes on")
                time.sleep(0.05)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _partitions(self) -> list[int]:
        def described() -> Any:
            topic = self._consumer.list_topics(self.topic, timeout=PATIENCE).topics[self.topic]
            if topic.error is not None and _passes(topic.error):
                raise KafkaException(topic.error)
            return topic

        topic = self._ask(described)
        if topic.error is not None:
            is_unknown = topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            hint = "make it first" if is_unknown else "docs/kafka.md has the rights that it takes"
            raise FollowError(f"the topic {self.topic}: {topic.error.str()}; {hint}")
        if len(topic.partitions) > MOST_SOURCES:
            raise FollowError(f"{self.topic} has {len(topic.partitions):,} partitions, and a table follows at most {MOST_SOURCES}")
        return sorted(topic.partitions)

    def _source(self, partition: int) -> str:
        return f"{self.prefix}{partition}"

    def _watermarks(self, partition: int) -> tuple[int, int]:
        def asked() -> tuple[int, int]:
            try:
                return self._consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=PATIENCE) or _no_answer()
            except KafkaException as error:
                # Its leader is unknown while brokers come back.
                if error.args[0].code() == KafkaError._UNKNOWN_PARTITION and partition in self._partitions():
                    raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)) from None
                raise

        first, end = self._ask(asked)
        return first, end

    def _identity(self) -> int:
        """The topic's identity; 0 if the brokers tell none, because they are old or the right is missing."""
        try:
            topics = self._admin.describe_topics(TopicCollection([self.topic]), request_timeout=PATIENCE / 2)
            found = topics[self.topic].result().topic_id
        except (KafkaException, AttributeError):
            return 0
        # Half of it, as a position.
        return int(found.get_least_significant_bits()) % 2**63

    def _retention(self) -> float:
        """The time for which the topic keeps deletions, in seconds; the default, if the right to ask is missing."""
        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        try:
            config = self._admin.describe_configs([resource], request_timeout=PATIENCE / 2)[resource].result()
            is_compacted = "compact" in config["cleanup.policy"].value
            return int(config["delete.retention.ms"].value) / 1000 if is_compacted else float("inf")
        except (KafkaException, KeyError):
            return KEPT

    # Of a log

    def begins_anew(self, stored: dict[str, int]) -> str | None:
        """Whether messages may be missing that no offset tells of."""
        # First, because that waits for brokers that are away, and says so.
        self._partitions()
        self._id, self._kept = self._identity(), self._retention()
        known = stored.get(f"{self.prefix}topic", 0)
        if known and self._id and known != self._id:
            return f"{self.topic} is another topic of the same name"
        has_until = stored.get(f"{self.prefix}has-until", 0)
        away = time.time() - has_until
        if away > self._kept:
            since = f"for {away / 3600:,.0f} hours" if has_until else "to its end"
            return f"nobody followed {since}, and {self.topic} keeps deletions for {self._kept / 3600:,.0f} hours"
        return None

    def marks(self, records: list[Record], is_all: bool, stored: dict[str, int]) -> dict[str, int]:
        """The topic's identity, and the time until which the table has everything: a deletion that it does not have is younger."""
        name = f"{self.prefix}has-until"
        before, now = stored.get(name, 0), time.time()
        times = {record.source: record.time for record in records}
        until = min(
            now if is_all and self._reached[source] >= end else times.get(source, before) for source, end in self._ends.items()
        )
        # Not with every batch, because an idle table stores it, too.
        is_later = until - before > min(3600.0, self._kept / 8)
        return {f"{self.prefix}topic": self._id, name: int(until) if is_later else before}

    def begin(self, positions: dict[str, int]) -> None:
        """Goes on at these offsets."""
        found = self._partitions()
        if not positions:
            self._id, self._kept = self._identity(), self._retention()
        for partition in found:
            source = self._source(partition)
            first, end = self._watermarks(partition)
            stored = positions.get(source, first)
            if not first <= stored <= end:
                raise FollowError(_lost(source, stored, first, end))
            self._reached[source], self._ends[source] = stored, end
        for name in positions:
            number = name.removeprefix(self.prefix)
            if number.isdigit() and int(number) not in found:
                raise FollowError(f"{name} is gone: the topic was made anew. Read all of it again with --resnapshot")
        self._assign(found)

    def _assign(self, partitions: list[int]) -> None:
        self._consumer.assign([TopicPartition(self.topic, number, self._reached[self._source(number)]) for number in partitions])
        self._assigned, self._looked_at = len(partitions), time.monotonic()

    def poll(self) -> list[Record]:
        """The next messages."""
        records: list[Record] = []
        message: Any
        for message in self._consumer.consume(AT_ONCE, PAUSE):
            error = message.error()
            source = self._source(message.partition()) if message.partition() is not None else ""
            if error is None:
                offset = message.offset()
                self._reached[source] = offset + 1
                size = len(message.value() or b"") + 100
                written = max(0, message.timestamp()[1]) / 1000
                records.append(Record(source, offset + 1, f"offset {offset:,} of {source}", message, size, written))
            elif error.code() == KafkaError._PARTITION_EOF:
                # Behind marks of transactions, which are no messages.
                self._reached[source] = max(self._reached[source], message.offset())
                self._ends[source] = max(self._ends[source], message.offset())
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self._check_identity()
                raise FollowError(_lost(source, self._reached.get(source, 0), *self._watermarks(message.partition())))
            elif not _passes(error):
                raise FollowError(f"Kafka says: {error.str()}")
        if time.monotonic() - self._looked_at > LOOK_EVERY:
            self._look()
        return records

    def _check_identity(self) -> None:
        if self._id and self._identity() not in (0, self._id):
            raise FollowError(f"{self.topic} was deleted and made anew: started again, it reads all of it")

    def _look(self) -> None:
        """Follows partitions that are new from their first message on."""
        self._looked_at = time.monotonic()
        try:
            topic = self._consumer.list_topics(self.topic, timeout=1.0).topics[self.topic]
        except KafkaException:
            return
        self._check_identity()
        if topic.error is not None or len(topic.partitions) <= self._assigned:
            return
        found = sorted(topic.partitions)
        for partition in found[self._assigned :]:
            source = self._source(partition)
            self._reached[source], self._ends[source] = self._watermarks(partition)[0], 0
            say(f"{source} is new")
        self._assign(found)

    def reached(self) -> dict[str, int]:
        """The offsets behind everything that was read."""
        return dict(self._reached)

    def ends(self) -> dict[str, int]:
        """The partitions' ends, as the brokers told them last."""
        for source in self._ends:
            partition = TopicPartition(self.topic, int(source.removeprefix(self.prefix)))
            marks = self._consumer.get_watermark_offsets(partition, cached=True)
            if marks is not None and marks[1] >= 0:
                self._ends[source] = max(self._ends[source], marks[1])
        return dict(self._ends)

    def changes(self, content: Message, fields: Fields, dim: int | None) -> list[tuple[str, Row | None]]:
        """The row of a message, or the key that it deletes."""
        try:
            raw = content.key()
            if raw is None:
                raise ValueError("it has no key")
            if self.key is None:
                key = raw.decode()
            else:
                found = parse(raw)
                if not isinstance(found, dict) or self.key not in found:
                    raise ValueError(f"its key is no object with a field {self.key}")
                key = key_of(found[self.key])
        except UnicodeDecodeError:
            raise BadRow("", "its key is no UTF-8") from None
        except ValueError as error:
            raise BadRow("", str(error)) from None
        raw = content.value()
        if raw is None:
            return [(key, None)]
        try:
            value = parse(raw)
            if not isinstance(value, dict):
                raise ValueError("it is no object of JSON")
        except ValueError as error:
            raise BadRow(key, str(error)) from None
        return [(key, fields.row(key, value, dim))]

    def close(self) -> None:
        """Ends its connections."""
        self._consumer.close()


def said(error: KafkaException) -> str:
    """The message of an error."""
    return f"Kafka says: {error.args[0].str()}"


def _settings(path: str) -> dict[str, str]:
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FollowError(f"the settings {path} can't be read: {error}") from None
    settings = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals:
            raise FollowError(f"line {number} of {path} is not of the form name=value")
        settings[name.strip()] = value.strip()
    return settings


def _passes(error: KafkaError) -> bool:
    # An unknown topic passes where others make it; here it is a mistake.
    is_unknown = error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    return error.code() in PASSING + PASSING_METADATA or (error.retriable() and not error.fatal() and not is_unknown)


def _no_answer() -> tuple[int, int]:
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def _lost(source: str, stored: int, first: int, end: int) -> str:
    return (
        f"the table is at offset {stored:,} of {source}, which has {first:,} to {end:,} now: messages were removed that the table does "
        "not have, or the topic was made anew. Read all of it again with --resnapshot; the table answers meanwhile"
    )
