"""Mail on the disk: what waits for agents that are away, in the file that all masters share, and which master has to send it.

Place in the flow: :mod:`mail` puts pieces here when an agent is away or its queue is full, and reads them again when it has room.
Each piece belongs to one master. A master says every second that it is at work; the mail of one that has not said so for too long
falls to the next that looks. Commands ask and clear the file also at rest.

A piece is on the disk until it was *delivered* and then *forgotten*. What is read twice is delivered twice, which does no harm.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from gossamer.agents.contract import SharedState, as_json
from gossamer.values.agents import as_mailed
from gossamer.values.errors import DiskFull
from gossamer.values.task import Task

#: Numbers of mail are never used again: a master may be about to delete one that another master has deleted already.
SCHEMA = """
CREATE TABLE IF NOT EXISTS mail (
    id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, master TEXT NOT NULL, task BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS mail_by_agent ON mail (master, agent, id);
CREATE TABLE IF NOT EXISTS leases (master TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
"""

#: Seconds for which a master has its mail after it has said that it is at work.
LEASE: Final = 5.0

#: Pieces of agents that have left, which are given to others at once: each lot is one transaction.
_LOT: Final = 1_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Task).decode


class MailOnDisk:
    """The mail of one master that lies on the disk."""

    def __init__(self, shared: Callable[[], SharedState], master: str) -> None:
        """Nothing is read yet.

        Args:
            shared: returns the file, as it is at the moment of asking.
            master: the master that has to send it.
        """
        self._shared = shared
        self._master = master
        self._marks: dict[str, int] = {}
        """Agent -> number of the last piece that was read; none where nothing is there."""
        self._done: set[int] = set()
        """Numbers of delivered pieces that are still there."""

    def __repr__(self) -> str:
        return f"<MailOnDisk of {self._master} for {', '.join(self._marks) or 'nobody'}>"

    def open(self) -> None:
        """Make the tables where they are missing.

        Raises:
            CrawlDirectoryError: the file cannot be used.
        """
        self._shared().open(SCHEMA)

    # -- pieces

    def may_have(self, agent: str) -> bool:
        """Whether a piece for this agent may be there that was not read yet."""
        return agent in self._marks

    def write(self, pieces: Iterable[tuple[str, Task]]) -> None:
        """Put tasks there, each with its agent; all of them, or none. Raises DiskFull."""
        marks: dict[str, int] = {}
        with self._shared().writing() as connection:
            for agent, task in pieces:
                row = connection.execute(
                    "INSERT INTO mail (agent, master, task) VALUES (?, ?, ?)", (agent, self._master, _encode(task))
                )
                marks.setdefault(agent, int(row.lastrowid or 0) - 1)
        self._marks = {**marks, **self._marks}

    def read(self, agent: str, most: int, on_way: Collection[int]) -> list[tuple[int, Task]]:
        """The next pieces for an agent with their numbers, up to `most`, without those that are on their way or delivered."""
        question = "SELECT id, task FROM mail WHERE master = ? AND agent = ? AND id > ? ORDER BY id LIMIT ?"
        reading = self._shared().reading
        while (mark := self._marks.get(agent)) is not None:
            rows = reading.execute(question, (self._master, agent, mark, most)).fetchall()
            if not rows:
                del self._marks[agent]
                break
            self._marks[agent] = rows[-1][0]
            found = [
                (number, as_mailed(_decode(task)))
                for number, task in rows
                if number not in on_way and number not in self._done
            ]
            if found:
                return found
        return []

    def delivered(self, numbers: Iterable[int]) -> None:
        """The agent has these pieces: they are there until :meth:`forget`, and are not read again."""
        self._done.update(numbers)

    def forget(self) -> bool:
        """Take away what was delivered; whether anything was."""
        if not self._done:
            return False
        done, self._done = self._done, set()
        try:
            with self._shared().writing() as connection:
                connection.executemany("DELETE FROM mail WHERE id = ?", [(number,) for number in done])
        except DiskFull:
            self._done |= done
            return False
        return True

    @property
    def waiting(self) -> int:
        """Pieces of this master that are not delivered."""
        mine = "SELECT count(*) FROM mail WHERE master = ?"
        (count,) = self._shared().reading.execute(mine, (self._master,)).fetchone()
        return int(count) - len(self._done)

    def count(self) -> int:
        """All pieces that lie there, of every master."""
        (count,) = self._shared().reading.execute("SELECT count(*) FROM mail").fetchone()
        return int(count)

    @property
    def is_empty(self) -> bool:
        """No piece of any master lies there."""
        return not has_mail(self._shared().reading)

    # -- whose it is

    def renew(self, now: float) -> int:
        """Say that this master is at work, and take the mail of those that have not said so for too long.

        Args:
            now: in seconds since the epoch.

        Returns:
            The masters whose mail was taken: :meth:`find_waiting` says for whom it is.
        """
        with self._shared().writing() as connection:
            connection.execute(
                "INSERT INTO leases VALUES (?, ?) ON CONFLICT (master) DO UPDATE SET until = excluded.until",
                (self._master, now + LEASE),
            )
            gone = connection.execute(
                "SELECT DISTINCT master FROM mail WHERE master NOT IN (SELECT master FROM leases WHERE until > ?)",
                (now,),
            ).fetchall()
            for (other,) in gone:
                connection.execute("UPDATE mail SET master = ? WHERE master = ?", (self._master, other))
        return len(gone)

    def give_back(self) -> None:
        """Say that this master ends in order."""
        with self._shared().writing() as connection:
            connection.execute("UPDATE leases SET until = 0 WHERE master = ?", (self._master,))

    def find_waiting(self) -> list[str]:
        """The agents for whom something lies there; all of it is read again."""
        rows = self._shared().reading.execute(
            "SELECT agent, min(id) FROM mail WHERE master = ? GROUP BY agent", (self._master,)
        )
        found = rows.fetchall()
        for agent, first in found:
            self._marks[agent] = min(first - 1, self._marks.get(agent, first))
        return [agent for agent, _ in found]

    def of_others(self, agents: Sequence[str]) -> list[tuple[int, str]]:
        """Number and host of pieces for agents that are not among these, some at a time; empty when there are none."""
        question = "SELECT id, task FROM mail WHERE agent NOT IN (SELECT value FROM json_each(?)) LIMIT ?"
        rows = self._shared().reading.execute(question, (as_json(agents), _LOT)).fetchall()
        return [(number, _decode(task).host) for number, task in rows]

    def redirect(self, pieces: Sequence[tuple[str, int]]) -> None:
        """Give pieces to other agents: the agent of each, and its number."""
        with self._shared().writing() as connection:
            connection.executemany("UPDATE mail SET agent = ? WHERE id = ?", pieces)


def has_mail(connection: sqlite3.Connection) -> bool:
    """Whether mail waits on the disk."""
    (found,) = connection.execute("SELECT EXISTS (SELECT 1 FROM mail)").fetchone()
    return bool(found)


def delete_mail(connection: sqlite3.Connection, has: Callable[[str], bool]) -> None:
    """Take mail off the disk whose URL is deleted, or was found on one that is, within a transaction."""
    rows = connection.execute("SELECT id, task FROM mail")
    gone = [(number,) for number, data in rows if has((task := _decode(data)).url) or has(task.source)]
    connection.executemany("DELETE FROM mail WHERE id = ?", gone)


def leases(connection: sqlite3.Connection) -> dict[str, float]:
    """Until when each master has said that it is at work, in seconds since the epoch; 0 of one that ended in order."""
    return dict(connection.execute("SELECT master, until FROM leases").fetchall())
