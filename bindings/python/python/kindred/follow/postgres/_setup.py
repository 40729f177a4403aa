"""The table in PostgreSQL, and the requirements of following it. An error has the SQL that meets the one that is missing."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from .._batch import UNCHANGED
from .._errors import BadRow, FollowError
from ._protocol import AsText, lsn
from ._values import Decode, Type, attribute_decoder, key_decoder, vector_decoder, vector_of_text

# Lists of columns and conditions of publications.
LEAST_VERSION = 150000


@dataclass(frozen=True)
class Wanted:
    """The table and columns that are to be followed."""

    conninfo: str = field(repr=False)
    table: str
    key: str
    vector: str
    attributes: tuple[str, ...]
    where: str | None
    slot: str
    publication: str


@dataclass(frozen=True)
class Columns:
    """The followed columns, and how their values become rows."""

    key: Decode
    vector: Decode
    attributes: dict[str, tuple[str, Decode]]
    """Types and decoders by names."""
    types: dict[str, int]
    """The number of each column's type, as the stream tells it."""
    vector_type: str

    def read_key(self, value: Any) -> str:
        """The key of a row."""
        if value is None or value is UNCHANGED:
            raise BadRow("", "its key is NULL")
        return str(value) if isinstance(value, AsText) else str(self.key(value))

    def read_vector(self, key: str, value: Any, dim: int) -> Any:
        """The vector of a row, with finite components."""
        import numpy as np

        if value is None:
            raise BadRow(key, "its vector is NULL")
        try:
            vector = vector_of_text(value) if isinstance(value, AsText) else self.vector(value)
        except ValueError as error:
            raise BadRow(key, f"its vector can't be read: {error}") from None
        if len(vector) != dim:
            raise BadRow(key, f"its vector has {len(vector)} components instead of {dim}")
        if not np.isfinite(vector).all():
            raise BadRow(key, "a component of its vector is not a finite float32")
        return vector

    def read_attribute(self, key: str, name: str, value: Any) -> Any:
        """The value of an attribute; None if it is missing."""
        if value is None:
            return None
        try:
            return str(value) if isinstance(value, AsText) else self.attributes[name][1](value)
        except ValueError as error:
            raise BadRow(key, f"its column {name}: {error}") from None


@dataclass(frozen=True)
class Slot:
    """A replication slot that is there."""

    confirmed: int
    is_active: bool
    is_lost: bool


def connect(conninfo: str) -> psycopg.Connection[Any]:
    """A connection for queries."""
    return psycopg.connect(conninfo, autocommit=True, application_name="kindred follow", connect_timeout=10)


def default_slot(table: str, model: str, url: str) -> str:
    """The name of a slot: the same for the same replica, another for each."""
    replica = hashlib.blake2b(f"{url} {table}".encode(), digest_size=4).hexdigest()
    return re.sub("[^a-z0-9_]", "_", f"kindred_{model.lower()}")[:50] + f"_{replica}"


def default_publication(slot: str) -> str:
    """The name of the publication that is made for a slot."""
    return slot


class Source:
    """The table in PostgreSQL."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.oid = 0
        self.estimate = 0
        # Sizes of the log's pages and files, in bytes.
        self.page, self.file = 8192, 16 << 20
        self.is_parted = False
        # The columns of the replica identity; None if it is the whole row.
        self.identity: frozenset[str] | None = None
        # The publication's condition, as the server writes it.
        self.where: str | None = None

    def behind_header(self, position: int) -> int:
        """Where the next record can begin: the end of one that fills a page is the beginning of the next page's header, and
        ``pg_current_wal_insert_lsn`` is behind that (xlog_internal.h: 24 bytes, and 40 at the beginning of a file)."""
        if position % self.page:
            return position
        return position + (24 if position % self.file else 40)

    def check(self, connection: psycopg.Connection[Any]) -> Columns:
        """Reads the columns' types, and checks all that following needs.

        Raises:
            FollowError: something is missing; the message has the cure.
        """
        wanted = self.wanted
        if connection.info.server_version < LEAST_VERSION:
            raise FollowError("the server is older than PostgreSQL 15, whose publications have lists of columns")
        sizes = "SELECT setting::bigint FROM pg_settings WHERE name IN ('wal_block_size', 'wal_segment_size') ORDER BY name"
        self.page, self.file = (size for (size,) in connection.execute(sizes).fetchall())
        level = _one(connection, "SHOW wal_level")[0]
        if level != "logical":
            raise FollowError(
                f"the server's wal_level is {level}: run ALTER SYSTEM SET wal_level = logical, and restart the server"
            )
        may = _one(connection, "SELECT rolreplication OR rolsuper, rolname FROM pg_roles WHERE rolname = current_user")
        if not may[0]:
            raise FollowError(f"the role {may[1]} may not follow: run ALTER ROLE {may[1]} REPLICATION")
        found = _one(connection, "SELECT to_regclass(%s)::oid", wanted.table)[0]
        if found is None:
            raise FollowError(f"there is no table {wanted.table}; name it as in SQL, such as public.items")
        self.oid = found
        kind, identity, estimate = _one(
            connection,
            "SELECT relkind::text, relreplident::text, greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s", found,
        )  # fmt: skip
        if kind not in "rp":
            raise FollowError(f"{wanted.table} is no table: only tables and partitioned tables have changes to follow")
        self.estimate, self.is_parted = estimate, kind == "p"
        if self.is_parted and wanted.where:
            raise FollowError(
                f"{wanted.table} has partitions, and PostgreSQL applies no condition to each of them; follow without --where, and "
                "choose rows by a filter when you ask"
            )
        columns = self._columns(connection)
        self._check_identity(connection, identity)
        return columns

    def _columns(self, connection: psycopg.Connection[Any]) -> Columns:
        wanted = self.wanted
        rows = connection.execute(
            "SELECT attname, atttypid::bigint, coalesce(nullif(b.oid, 0), t.oid)::bigint, coalesce(b.typname, t.typname),"
            " coalesce(b.typtype, t.typtype)::text FROM pg_attribute JOIN pg_type t ON t.oid = atttypid"
            " LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype"
            " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
            (self.oid,),
        ).fetchall()
        types = {
            name: (declared, Type(oid, "enum" if kind == "e" else base)) for name, declared, oid, base, kind in rows
        }
        named = [wanted.key, wanted.vector, *wanted.attributes]
        missing = [name for name in named if name not in types]
        if missing:
            raise FollowError(f"{wanted.table} has no column {', '.join(missing)}; it has {', '.join(types)}")
        key = key_decoder(types[wanted.key][1])
        if key is None:
            raise FollowError(
                f"the column {wanted.key} has the type {types[wanted.key][1]}: a key is a text, a whole number or a uuid"
            )
        vector = vector_decoder(types[wanted.vector][1])
        if vector is None:
            raise FollowError(
                f"the column {wanted.vector} has the type {types[wanted.vector][1]}: vectors are real[], double precision[], "
                "vector or halfvec"
            )
        attributes = {}
        for name in wanted.attributes:
            decoder = attribute_decoder(types[name][1])
            if decoder is None:
                raise FollowError(
                    f"the column {name} has the type {types[name][1]}, which no attribute has; leave it out, or add a generated "
                    f"column: ALTER TABLE {wanted.table} ADD COLUMN {name}_text text GENERATED ALWAYS AS ({name}::text) STORED"
                )
            attributes[name] = decoder
        declared = {name: types[name][0] for name in named}
        return Columns(key, vector, attributes, declared, types[wanted.vector][1].name)

    def _check_identity(self, connection: psycopg.Connection[Any], identity: str) -> None:
        """The key must be unique and NOT NULL, and be in what PostgreSQL logs of rows that are changed."""
        wanted = self.wanted
        unique = _one(
            connection,
            "SELECT count(*) > 0 FROM pg_index JOIN pg_attribute a ON a.attrelid = indrelid AND a.attnum = indkey[0]"
            " WHERE indrelid = %s AND indisunique AND indisvalid AND indpred IS NULL AND indnkeyatts = 1 AND attname = %s"
            " AND attnotnull",
            self.oid, wanted.key,
        )[0]  # fmt: skip
        if not unique:
            raise FollowError(
                f"{wanted.key} does not name one row: it needs a primary key, or a unique index and NOT NULL, of this column "
                f"alone (ALTER TABLE {wanted.table} ADD PRIMARY KEY ({wanted.key}))"
            )
        cure = f"ALTER TABLE {wanted.table} REPLICA IDENTITY FULL"
        if identity != "f":
            rows = connection.execute(
                "SELECT attname FROM pg_index JOIN pg_attribute a ON a.attrelid = indrelid AND a.attnum = ANY(indkey)"
                " WHERE indrelid = %s AND CASE %s WHEN 'd' THEN indisprimary WHEN 'i' THEN indisreplident ELSE false END",
                (self.oid, identity),
            )
            self.identity = frozenset(name for (name,) in rows.fetchall())
        else:
            self.identity = None
        if self.identity is not None and wanted.key not in self.identity:
            raise FollowError(
                f"changes of {wanted.table} would not tell which row they are about: its replica identity is without {wanted.key}. "
                f"Run {cure}, or ALTER TABLE {wanted.table} REPLICA IDENTITY USING INDEX with a unique index of {wanted.key}"
            )
        if wanted.where and self.identity is not None:
            raise FollowError(
                "with --where, updates tell only with a full replica identity whether the old row met the condition, and "
                f"PostgreSQL refuses them otherwise; run {cure}"
            )

    def publish(self, connection: psycopg.Connection[Any]) -> None:
        """Makes the publication, unless it is there."""
        wanted = self.wanted
        if self._published(connection):
            return
        statement = self._publication(wanted.publication)
        try:
            connection.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            raise FollowError(
                f"the role may not make the publication; let the owner of {wanted.table} run: {statement.as_string(connection)}"
            ) from None
        except (psycopg.errors.SyntaxError, psycopg.errors.DataError, psycopg.errors.ProgrammingError) as error:
            raise FollowError(f"the publication can't be made ({statement.as_string(connection)}): {error}") from None
        assert self._published(connection)

    def _published(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether the publication is there; its condition is that of the snapshot."""
        wanted = self.wanted
        row = connection.execute(
            "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot FROM pg_publication WHERE pubname = %s",
            (wanted.publication,),
        ).fetchone()
        if row is None:
            return False
        has_all, is_by_root = row
        names, self.where = self._published_columns(connection, wanted.publication)
        name, cure = wanted.publication, "name another with --publication, which is made if it is not there"
        if not has_all:
            raise FollowError(f"the publication {name} leaves out inserts, updates, deletes or truncates; {cure}")
        if self.is_parted and is_by_root:
            raise FollowError(f"the publication {name} has publish_via_partition_root, which hides TRUNCATE of partitions; {cure}")
        if not names:
            raise FollowError(f"the publication {name} has not the table {wanted.table}; {cure}")
        missing = {wanted.key, wanted.vector, *wanted.attributes} - set(names)
        if missing:
            raise FollowError(
                f"the publication {name} is without the column {', '.join(sorted(missing))}; drop it (DROP PUBLICATION {name}) and "
                "begin anew with --resnapshot"
            )
        if self.where != self._as_written(connection):
            has = f"has the condition {self.where}" if self.where else "has no condition"
            raise FollowError(f"the publication {name} {has}, and --where is another; {cure}")
        return True

    def _published_columns(self, connection: psycopg.Connection[Any], publication: str) -> tuple[list[str], str | None]:
        """The columns of the table, or of its partitions, that a publication has, and its condition."""
        rows = connection.execute(
            "SELECT attnames::text[], rowfilter FROM pg_publication_tables JOIN pg_namespace n ON nspname = schemaname"
            " JOIN pg_class c ON relnamespace = n.oid AND relname = tablename"
            " WHERE pubname = %s AND (c.oid = %s OR c.oid IN (SELECT relid FROM pg_partition_tree(%s::regclass)))",
            (publication, self.oid, self.oid),
        ).fetchall()
        if not rows and self.is_parted:
            # It has no partition yet.
            listed = _one(connection, "SELECT count(*) FROM pg_publication_rel WHERE prrelid = %s", self.oid)[0]
            return ([self.wanted.key, self.wanted.vector, *self.wanted.attributes] if listed else []), None
        names = set.intersection(*(set(names) for names, _ in rows)) if rows else set()
        return sorted(names), rows[0][1] if rows else None

    def _as_written(self, connection: psycopg.Connection[Any]) -> str | None:
        """The wanted condition as the server writes it."""
        if not self.wanted.where:
            return None
        passing = f"{self.wanted.publication[:50]}_check"
        try:
            with connection.transaction(force_rollback=True):
                connection.execute(self._publication(passing))
                return self._published_columns(connection, passing)[1]
        except psycopg.errors.InsufficientPrivilege:
            # Who may not make one can't compare; the publication's own counts.
            return self.where

    def drop_publication(self, connection: psycopg.Connection[Any]) -> None:
        """Drops the publication, if it was made here."""
        name = self.wanted.publication
        if name == default_publication(self.wanted.slot):
            try:
                connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))
            except psycopg.errors.InsufficientPrivilege:
                # Its owner has made it, and it is used as it is.
                pass

    def _publication(self, name: str) -> sql.Composed:
        wanted = self.wanted
        columns: sql.Composable = sql.SQL("")
        # With a full identity, all columns are logged, and must be published. Lists are not for partitions of their own.
        if self.identity is not None and not self.is_parted:
            names = dict.fromkeys([wanted.key, wanted.vector, *wanted.attributes, *sorted(self.identity)])
            columns = sql.SQL(" ({})").format(sql.SQL(", ").join(map(sql.Identifier, names)))
        where = sql.SQL(f" WHERE ({wanted.where})") if wanted.where else sql.SQL("")
        return sql.SQL("CREATE PUBLICATION {} FOR TABLE {}{}{}").format(
            sql.Identifier(name), sql.SQL(wanted.table), columns, where
        )

    def partitions(self, connection: psycopg.Connection[Any]) -> frozenset[int]:
        """The table's partitions, by their numbers; none of a table that has no partitions."""
        if not self.is_parted:
            return frozenset()
        rows = connection.execute("SELECT relid::oid::bigint FROM pg_partition_tree(%s::regclass) WHERE isleaf", (self.oid,))
        return frozenset(oid for (oid,) in rows.fetchall())

    def is_empty(self, connection: psycopg.Connection[Any], partition: int) -> bool:
        """Whether a partition has no row."""
        name = _one(connection, "SELECT %s::regclass::text", partition)[0]
        return not _one(connection, f"SELECT EXISTS (SELECT FROM {name})")[0]

    def slot(self, connection: psycopg.Connection[Any]) -> Slot | None:
        """The slot, if it is there."""
        row = connection.execute(
            "SELECT confirmed_flush_lsn::text, active, wal_status = 'lost', plugin, database = current_database()"
            " FROM pg_replication_slots WHERE slot_name = %s",
            (self.wanted.slot,),
        ).fetchone()
        if row is None:
            return None
        confirmed, active, lost, plugin, is_here = row
        if plugin != "pgoutput" or not is_here:
            raise FollowError(
                f"the slot {self.wanted.slot} is another's (plug-in {plugin}); name a new one with --slot"
            )
        return Slot(lsn(confirmed) if confirmed else 0, active, bool(lost))

    def drop_slot(self, connection: psycopg.Connection[Any]) -> bool:
        """Drops the slot, so that the server keeps no WAL for it any more. Returns whether it was there."""
        slot = self.slot(connection)
        if slot is None:
            return False
        if slot.is_active:
            # A follower that was killed has it until the server notices.
            raise psycopg.OperationalError(f"the slot {self.wanted.slot} is in use; end the follower that has it")
        connection.execute("SELECT pg_drop_replication_slot(%s)", (self.wanted.slot,))
        return True

    def select(self) -> sql.Composed:
        """The followed columns of the followed rows."""
        wanted = self.wanted
        names = sql.SQL(", ").join(map(sql.Identifier, [wanted.key, wanted.vector, *wanted.attributes]))
        where = sql.SQL(f" WHERE {self.where}") if self.where else sql.SQL("")
        return sql.SQL("SELECT {} FROM {}{}").format(names, sql.SQL(wanted.table), where)

    def copy(self) -> sql.Composed:
        """The same in binary."""
        return sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(self.select())

    def dim(self, connection: psycopg.Connection[Any]) -> int | None:
        """The number of components: that of the column's type, or of a row."""
        wanted = self.wanted
        type_name, modifier = _one(
            connection, "SELECT format_type(atttypid, NULL), atttypmod FROM pg_attribute WHERE attrelid = %s AND attname = %s",
            self.oid, wanted.vector,
        )  # fmt: skip
        if not type_name.endswith("[]"):
            if modifier > 0:
                return int(modifier)
            size = sql.SQL("vector_dims({})")
        else:
            size = sql.SQL("cardinality({})")
        statement = sql.SQL("SELECT {} FROM ({}) AS rows WHERE {} IS NOT NULL LIMIT 1").format(
            size.format(sql.Identifier(wanted.vector)), self.select(), sql.Identifier(wanted.vector)
        )
        row = connection.execute(statement).fetchone()
        return None if row is None else int(row[0])


def digest(partitions: frozenset[int]) -> int:
    """A number for a set of partitions, to store."""
    text = ",".join(map(str, sorted(partitions)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _one(connection: psycopg.Connection[Any], query: str, *values: Any) -> tuple[Any, ...]:
    row = connection.execute(query, values or None).fetchone()
    assert row is not None
    return tuple(row)


# Of messages that are the same at the next attempt: libpq tells no code where a connection can't be made.
LASTING = (
    "password authentication failed", "no password supplied", "no pg_hba.conf entry", "certificate", "does not support SSL",
    '" does not exist', "invalid sslmode", "is not permitted to log in",
)  # fmt: skip


def is_lost(error: psycopg.Error) -> bool:
    """Whether a connection is gone or can't be made now, so that another attempt may do."""
    if error.sqlstate is None and any(part in str(error) for part in LASTING):
        return False
    states = ("08", "57P01", "57P02", "57P03", "53300")
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and (
        error.sqlstate is None or error.sqlstate.startswith(states)
    )
