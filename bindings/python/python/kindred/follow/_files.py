"""Files of JSON lines in a directory: those that are there, lines that are appended, files that are added."""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import quote

from ._batch import Row
from ._errors import BadRow, FollowError
from ._log import MOST_SOURCES, Record
from ._records import Fields, key_of, parse
from ._target import say

SUFFIXES = (".jsonl", ".ndjson")
# Read at once, in bytes.
PIECE = 4 << 20
LONGEST_LINE = 64 << 20
# Between looks into the directory while nothing comes, in seconds.
PAUSE = 0.1


class Files:
    """The lines of the files of a directory, in the order of the files' names. The position of a file is in bytes."""

    prefix = "files/"
    unit = "bytes"

    def __init__(self, folder: str, key: str) -> None:
        self.folder, self.key = folder, key
        self._reached: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._inodes: dict[str, int] = {}
        # Those that were read up to half a line.
        self._halves: set[str] = set()
        self._told: set[str] = set()

    def begin(self, positions: dict[str, int]) -> None:
        """Goes on at these positions."""
        self._reached = dict(positions)
        self._look()
        for name, at in self._reached.items():
            path = self._path(self._names[name])
            if at and self._read(path, at - 1, 1) != b"\n":
                raise FollowError(_rewritten(path))

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _look(self) -> None:
        """Finds the files and their sizes."""
        try:
            entries = sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file() and not entry.name.startswith("."))
        except OSError as error:
            raise FollowError(f"the directory {self.folder} can't be read: {error.strerror}") from None
        self._names = {self.prefix + quote(name): name for name in entries if name.endswith(SUFFIXES)}
        for name in entries:
            if not name.endswith(SUFFIXES):
                self._say_once(name, f"{self._path(name)} is left alone: names of followed files end in {' or '.join(SUFFIXES)}")
        if len(self._names) > MOST_SOURCES:
            raise FollowError(
                f"{self.folder} has {len(self._names):,} files, and a table follows at most {MOST_SOURCES}; remove those that were read: "
                "their rows stay"
            )
        sizes = {}
        for source, name in list(self._names.items()):
            try:
                found = os.stat(self._path(name))
            except FileNotFoundError:
                del self._names[source]
                continue
            sizes[source] = found.st_size
            if self._inodes.setdefault(source, found.st_ino) != found.st_ino or found.st_size < self._reached.get(source, 0):
                raise FollowError(_rewritten(self._path(name)))
        self._sizes = sizes
        self._reached = {source: self._reached.get(source, 0) for source in sizes}
        self._inodes = {source: self._inodes[source] for source in sizes}

    def _say_once(self, about: str, text: str) -> None:
        if about not in self._told:
            self._told.add(about)
            say(text)

    def poll(self) -> list[Record]:
        """The next lines."""
        self._look()
        records: list[Record] = []
        size = 0
        self._halves = set()
        for source, name in self._names.items():
            while self._reached[source] < self._sizes[source] and size < PIECE:
                at = begin = self._reached[source]
                for line in self._lines(name, begin):
                    place = f"byte {at:,} of {name}"
                    at += len(line)
                    if line.strip():
                        records.append(Record(source, at, place, line, len(line)))
                size += at - begin
                self._reached[source] = at
                if at == begin:
                    self._halves.add(source)
                    break
        if not records:
            time.sleep(PAUSE)
        return records

    @staticmethod
    def _read(path: str, start: int, length: int) -> bytes:
        try:
            with open(path, "rb") as file:
                file.seek(start)
                return file.read(length)
        except OSError as error:
            raise FollowError(f"{path} can't be read: {error.strerror}") from None

    def _lines(self, name: str, start: int) -> list[bytes]:
        """Whole lines from here on."""
        path, piece = self._path(name), PIECE
        while True:
            data = self._read(path, start, piece)
            end = data.rfind(b"\n") + 1
            if end:
                # Not by `splitlines`, for which a carriage return alone ends a line.
                return [line + b"\n" for line in data[: end - 1].split(b"\n")]
            if len(data) < piece:
                self._say_once(f"{name}:{start}", f"the last line of {path} has no end yet: it is read when it ends with a line break")
                return []
            piece *= 4
            if piece > LONGEST_LINE:
                raise FollowError(f"a line of {path}, at byte {start:,}, is longer than {LONGEST_LINE:,} bytes")

    def reached(self) -> dict[str, int]:
        """The places behind everything that was read."""
        return dict(self._reached)

    def ends(self) -> dict[str, int]:
        """The ends of the files' last whole lines."""
        return {source: self._reached[source] if source in self._halves else size for source, size in self._sizes.items()}

    def marks(self, records: list[Record], is_all: bool, stored: dict[str, int]) -> dict[str, int]:
        """None."""
        return {}

    def begins_anew(self, stored: dict[str, int]) -> str | None:
        """Never by itself."""
        return None

    def changes(self, content: Any, fields: Fields, dim: int | None) -> list[tuple[str, Row | None]]:
        """The row of a line, or the keys that it deletes: ``{"delete": "4711"}``, or several of them."""
        try:
            value = parse(content)
            if not isinstance(value, dict):
                raise ValueError("it is no object of JSON")
            if set(value) == {"delete"}:
                keys = value["delete"] if isinstance(value["delete"], list) else [value["delete"]]
                return [(key_of(key), None) for key in keys]
            if self.key not in value:
                raise ValueError(f"it has no field {self.key}")
            key = key_of(value[self.key])
        except ValueError as error:
            raise BadRow("", str(error)) from None
        return [(key, fields.row(key, value, dim))]

    def close(self) -> None:
        """Nothing is open."""


def _rewritten(path: str) -> str:
    return (
        f"{path} was written anew or cut, and lines are only appended to a followed file. Read all files again with --resnapshot; the "
        "table answers meanwhile"
    )
