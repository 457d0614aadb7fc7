"""Conformance suite for keepers: no entry is lost and none is doubled, wherever a group fails and whenever the process dies."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gossamer.contracts.keeping import Keeper
from gossamer.contracts.ledger import Group, Ledger
from gossamer.model.visit import Location, Record, Visit
from gossamer.testing.storing import hostile_visits, unanswered, visit

#: Closes what is open as a kill would, opens the ledger again, cuts files back to its ends with the keeper's own `files`
#: (`gossamer.stores.recovery.restore`), and starts a keeper, as a crawl does that goes on. At first all is empty.
Reopen = Callable[[], tuple[Ledger, Keeper]]


class _Failed(Exception):
    """Makes a group fail, so that it is not kept."""


def check_keeper(
    reopen: Reopen,
    directory: Path,
    kept: Callable[[], Sequence[str]],
    wanted: Callable[[Visit], bool] = lambda one: True,
) -> None:
    """Check that a keeper, empty at first, keeps its promises at every point where a group can fail or a process can die.

    Args:
        reopen: as above.
        directory: the crawl directory of both.
        kept: returns the URLs of the kept visits as another reader finds them, each as often as it is there.
        wanted: says whether it keeps a visit.
    """
    _Suite(reopen, directory, kept, wanted).run()


class _Suite:
    def __init__(
        self, reopen: Reopen, directory: Path, kept: Callable[[], Sequence[str]], wanted: Callable[[Visit], bool]
    ) -> None:
        self._reopen = reopen
        self._directory = directory
        self._kept = kept
        self._wanted = wanted
        self._expected: list[str] = []
        self._number = 0

    def run(self) -> None:
        self._kill()
        self._check("something is kept before anything was committed")
        with self.ledger.group() as group:
            self._stage([], group)
        self._check("a group without visits left something")
        self._commit(self._records())
        self._check("a committed group is not there")
        for fails in (self._raise_behind_stage, self._kill_behind_stage, self._kill_behind_ends):
            for _ in range(2):
                self._again(fails)
        for _ in range(3):  # a kill behind a commit, and one at the next start
            self._commit(self._records())
            self._kill()
            self._kill()
            self._check("a group that was committed before a kill is not there once")
        self._commit([Record(one, None) for one in hostile_visits()])
        self._kill()
        self._check("text that a server can send was kept with changes, or in part")

    def _records(self) -> list[Record]:
        """Keep an answer, a visit without one and another answer in a group of their own."""
        self._number += 1
        base = f"http://a.test/{self._number}"
        first, last = visit(f"{base}/1", b"one"), visit(f"{base}/2", b"two" * 1000)
        return [
            Record(first, Location("warc/a.warc.gz", self._number, 1)),
            Record(unanswered(f"{base}/gone"), None),
            Record(last, Location("warc/a.warc.gz", self._number + 1, 1)),
        ]

    def _stage(self, records: Sequence[Record], group: Group) -> None:
        self.keeper.stage(records, group)

    def _commit(self, records: Sequence[Record]) -> None:
        with self.ledger.group() as group:
            self._stage(records, group)
            ends = self.keeper.ends()
            for file, end in ends.items():
                size = (self._directory / file).stat().st_size
                assert size == end, f"{file} has {size} bytes, and is said to end at {end}"
                group.written(file, end)
        self.keeper.committed(ends)
        assert not self.keeper.ends(), "ends are those since the last call"
        self._expected += [one.visit.url for one in records if self._wanted(one.visit)]

    def _again(self, fails: Callable[[Sequence[Record]], None]) -> None:
        """Give a failed group again as a whole, and let others follow."""
        records = self._records()
        fails(records)
        self._check(f"a group that failed left something ({fails.__name__.strip('_')})")
        self._commit(records)
        self._check("a group that was given again is not there once")
        self._commit(self._records())
        self._check("the group behind one that failed is not there once")

    def _raise_behind_stage(self, records: Sequence[Record]) -> None:
        try:
            with self.ledger.group() as group:
                self._stage(records, group)
                raise _Failed
        except _Failed:
            self.keeper.take_back()
        assert not self.keeper.ends(), "a file was named that was taken back"

    def _kill_behind_stage(self, records: Sequence[Record]) -> None:
        try:
            with self.ledger.group() as group:
                self._stage(records, group)
                raise _Failed
        except _Failed:
            self._kill()

    def _kill_behind_ends(self, records: Sequence[Record]) -> None:
        try:
            with self.ledger.group() as group:
                self._stage(records, group)
                for file, end in self.keeper.ends().items():
                    group.written(file, end)
                raise _Failed
        except _Failed:
            self._kill()

    def _kill(self) -> None:
        self.ledger, self.keeper = self._reopen()

    def _check(self, trouble: str) -> None:
        found, expected = sorted(self._kept()), sorted(self._expected)
        lost = [url for url in expected if url not in found]
        assert found == expected, f"{trouble}: {len(found)} kept, {len(expected)} expected, lost: {lost[:3]}"
