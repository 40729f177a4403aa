"""Why a follower stops."""

from __future__ import annotations


class FollowError(Exception):
    """The message names the fault and the cure."""


class BadRow(Exception):
    """A row of the source can't be one of the table. Its key is empty if it is unknown."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"row {key!r}: {reason}" if key else reason)
        self.key = key
        self.reason = reason


class BadRows(FollowError):
    """The service refuses a batch."""

    def __init__(self, rows: list[BadRow]) -> None:
        super().__init__(
            f"{len(rows)} rows can't be taken, and nothing of their batch was kept; the first is {rows[0].key!r}: {rows[0].reason}. "
            "Mend them in the source, or leave such rows out with --on-bad-row skip"
        )
        self.rows = rows


class Overtaken(FollowError):
    """Somebody else has changed the table."""


class Stopped(FollowError):
    """It was told to, in the middle of something."""
