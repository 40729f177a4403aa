"""The command line of ``kindred follow``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from .._errors import KindredError
from ._errors import BadRow, FollowError, Stopped
from ._files import Files
from ._log import Follow, Log
from ._records import TYPES
from ._target import Target, say

DESCRIPTION = """\
Keep a table of a Kindred service equal to a table of PostgreSQL, a topic of Kafka, or files of JSON lines: all rows first, then every
change, in order.

Whatever stops, nothing is lost and nothing is done twice: how far the table has come is stored with its rows. Start the command
again, and it goes on.
"""
EPILOG = """\
examples:
  kindred follow postgres://user@host/shop --table items --key id --vector embedding --attributes name,price --to http://localhost:8080
  kindred follow postgres://host/shop --table items --key id --vector embedding --where 'price > 0' --model cheap --to http://localhost:8080
  kindred follow postgres://host/shop --table items --key id --vector embedding --to http://localhost:8080 --drop-slot
  kindred follow kafka://host:9092/items --vector embedding --attributes name=text,price=number --to http://localhost:8080
  kindred follow ./items --key id --vector embedding --attributes name=text,price=number --to http://localhost:8080

The database's password comes from PGPASSWORD or ~/.pgpass, Kafka's from --kafka-config, the service's key from KINDRED_API_KEY. See
docs/postgres.md and docs/kafka.md.
"""

# Options that are for one kind of source alone.
OF_POSTGRES = ("table", "where", "slot", "publication", "drop_slot")
OF_KAFKA = ("kafka_config",)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kindred follow", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="SOURCE",
                        help="postgres://user@host/name, kafka://host:9092/topic, or a directory of .jsonl files")  # fmt: skip
    parser.add_argument("--key", metavar="NAME",
                        help="column or field with the rows' keys; unique and NOT NULL. Of Kafka: a field of the message's key, "
                        "if that is an object [default: the whole key as text]")  # fmt: skip
    parser.add_argument("--vector", required=True, metavar="NAME",
                        help="column of vectors (real[], double precision[], vector or halfvec), or field with a list of numbers")  # fmt: skip
    parser.add_argument("--attributes", default="", metavar="NAME,…",
                        help="columns or fields that become attributes, for filters and answers; fields with a type, such as "
                        f"price=number, unless the table is there: {', '.join(TYPES)}")  # fmt: skip
    parser.add_argument("--to", required=True, metavar="URL", help="the service, such as http://localhost:8080")
    parser.add_argument("--model", metavar="NAME",
                        help="the table there, which is made if it is not there [default: name of the table, topic or directory]")  # fmt: skip
    parser.add_argument("--metric", choices=("cosine", "dot"), default="cosine", help="metric of a table that is made [default: cosine]")
    parser.add_argument("--dim", type=int, metavar="N", help="components of a vector, if there is no row yet")
    parser.add_argument("--on-bad-row", choices=("stop", "skip"), default="stop",
                        help="fate of rows without a vector, or with one that can't be taken [default: stop]")  # fmt: skip
    parser.add_argument("--resnapshot", action="store_true", help="copy all rows again, while the table answers")
    parser.add_argument("--until-caught-up", action="store_true", help="end when the table has all that is there now")
    parser.add_argument("--ready-file", metavar="FILE", type=Path, help="made when the table has all that was there at the start")
    postgres = parser.add_argument_group("PostgreSQL")
    postgres.add_argument("--table", help="table to follow, such as items or shop.items")
    postgres.add_argument("--where", metavar="CONDITION", help="only rows that meet this condition of SQL")
    postgres.add_argument("--slot", metavar="NAME", help="replication slot: each replica has its own [default: made of model and service]")
    postgres.add_argument("--publication", metavar="NAME", help="publication of the table, made if it is not there [default: the slot's name]")
    postgres.add_argument("--drop-slot", action="store_true", help="drop the slot, so that the server keeps no WAL for it, and end")
    kafka = parser.add_argument_group("Kafka")
    kafka.add_argument("--kafka-config", metavar="FILE", help="librdkafka's settings, name=value in each line: TLS, SASL, passwords")
    return parser


def _kind(source: str) -> str:
    if source.startswith(("postgres://", "postgresql://")):
        return "postgres"
    return "kafka" if source.startswith("kafka://") else "files"


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = _parser()
    arguments = parser.parse_args(given)
    kind = _kind(arguments.source)
    if kind == "files" and "://" in arguments.source:
        parser.error(f"the source {arguments.source.split('://')[0]}:// is unknown: postgres://, kafka:// or a directory")
    for name in (OF_POSTGRES if kind != "postgres" else ()) + (OF_KAFKA if kind != "kafka" else ()):
        if getattr(arguments, name):
            parser.error(f"--{name.replace('_', '-')} is not for {arguments.source if kind == 'files' else kind}")
    for name in {"postgres": ("table", "key"), "kafka": (), "files": ("key",)}[kind]:
        if not getattr(arguments, name):
            parser.error(f"--{name} is missing")
    return arguments


class Skipped:
    """Counts rows that are left out, and names the first ones."""

    NAMED = 10

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, bad: BadRow) -> None:
        with self._lock:
            self.count += 1
            count = self.count
        if count <= self.NAMED:
            say(f"left out: {bad}" + (" (further ones are only counted)" if count == self.NAMED else ""))


def main(given: list[str] | None = None) -> NoReturn:
    """Runs the command, and ends the program."""
    arguments = _arguments(sys.argv[1:] if given is None else given)
    kind = _kind(arguments.source)
    try:
        import httpx  # noqa: F401

        if kind == "postgres":
            import psycopg  # noqa: F401
        elif kind == "kafka":
            import confluent_kafka  # noqa: F401
    except ImportError as error:
        _end(f"no module {error.name}; run: pip install 'kindred-vectors[{'client' if kind == 'files' else kind}]'", 1)
    stopped = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopped.set())
    skipped = Skipped()
    try:
        _follow(kind, arguments, skipped, stopped)
    except BadRow as bad:
        cure = "mend it in the source, or leave such rows out with --on-bad-row skip"
        _end(f"{bad}; the changes before it are in the table, and nothing of its transaction; {cure}", 1)
    except Stopped as stop:
        say(str(stop))
        sys.exit(0)
    except (FollowError, KindredError) as error:
        _end(str(error), 1)
    if skipped.count:
        say(f"{skipped.count:,} rows were left out")
    sys.exit(0)


def _follow(kind: str, arguments: argparse.Namespace, skipped: Skipped, stopped: threading.Event) -> None:
    on_bad = skipped if arguments.on_bad_row == "skip" else None
    key = os.environ.get("KINDRED_API_KEY")

    def caught_up() -> None:
        if arguments.ready_file:
            arguments.ready_file.touch()

    if kind == "postgres":
        from .postgres import _follow as postgres

        model = arguments.model or arguments.table.rsplit(".", 1)[-1].strip('"')
        postgres.follow(arguments, Target(arguments.to, model, key, stopped.is_set), on_bad, stopped, caught_up)
        return

    def run(log: Log, name: str) -> None:
        target = Target(arguments.to, arguments.model or name, key, stopped.is_set)
        Follow(log, target, arguments, on_bad, stopped, caught_up).run()

    if kind == "files":
        run(Files(arguments.source, arguments.key), Path(arguments.source).resolve().name)
        return
    from confluent_kafka import KafkaException

    from . import _kafka

    kafka = _kafka.Kafka(arguments.source, arguments.key, arguments.kafka_config, stopped.is_set)
    try:
        run(kafka, kafka.topic)
    except KafkaException as error:
        raise FollowError(_kafka.said(error)) from None


def _end(message: str, code: int) -> NoReturn:
    print(f"\r\x1b[Kerror: {message}" if sys.stderr.isatty() else f"error: {message}", file=sys.stderr)
    sys.exit(code)
