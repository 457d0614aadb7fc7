"""A person's file of scores: how important hosts and URLs are, by traffic, sales, ranks, or whatever they are counted by.

Place in the flow: read by the prioritizer when a crawl starts. A line is `SCORE WHAT`; WHAT is a host, a registered domain,
`*.DOMAIN` for what lies below it, a URL, or a URL's beginning with `*` behind it. The most specific line holds. Lines that cannot
be read are counted and named; the others hold.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path

from gossamer.flow.errors import SettingError
from gossamer.model.domains import registered_domain
from gossamer.model.errors import UnreadableUrl
from gossamer.model.url import canonical, host_of

#: Lines of a file: what it names is held in memory, some 150 bytes each.
MOST_LINES = 1_000_000

#: Bad lines that are shown; the others are counted.
SHOWN = 10

#: Lengths of beginnings that are told apart: each is looked up for each URL.
MOST_LENGTHS = 64

#: Bytes of a line that are looked at.
LINE_BYTES = 8_192


class Scores:
    """What a file says.

    Args:
        lines: of the file, with what ends them.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._hosts: dict[str, float] = {}
        self._below: dict[str, float] = {}
        self._urls: dict[str, float] = {}
        self._beginnings: dict[str, float] = {}
        self.read = 0
        """Lines that say something, bad ones among them."""
        self.bad = 0
        self.shown: list[str] = []
        """The first bad lines, each with its number and why it is bad."""
        for number, line in enumerate(lines, 1):
            if number > MOST_LINES:
                raise SettingError(f"it has more than {MOST_LINES:,} lines")
            self._take(number, line)
        self._scale()
        self._lengths = sorted({len(one) for one in self._beginnings}, reverse=True)

    def __len__(self) -> int:
        return sum(map(len, self._tables()))

    def _tables(self) -> tuple[dict[str, float], ...]:
        return self._hosts, self._below, self._urls, self._beginnings

    def _take(self, number: int, line: str) -> None:
        words = line.split()
        if not words or words[0].startswith("#"):
            return
        self.read += 1
        try:
            self._put(words, len(line))
        except (ValueError, UnreadableUrl) as error:
            self.bad += 1
            if len(self.shown) < SHOWN:
                self.shown.append(f"line {number}: {error}")

    def _put(self, words: list[str], length: int) -> None:
        if len(words) != 2 or length > LINE_BYTES:
            raise ValueError("write a score and a host or URL, as `0.9 example.org`")
        score, what = words
        try:
            value = float(score)
        except ValueError:
            value = -1.0
        if not 0.0 <= value < float("inf"):
            raise ValueError(f"{score[:40]!r} is not a score; write a number from 0 on")
        if "://" in what:
            self._put_url(what, value)
        else:
            below = what.startswith("*.")
            host = host_of(canonical(f"http://{what.removeprefix('*.')}/"))
            if not host or "*" in host:
                raise ValueError(f"{what[:80]!r} is not a host")
            (self._below if below else self._hosts)[host] = value

    def _put_url(self, what: str, value: float) -> None:
        if not what.endswith("*"):
            self._urls[canonical(what)] = value
            return
        beginning = what.removesuffix("*")
        if "*" in beginning or not host_of(canonical(beginning)):
            raise ValueError(f"{what[:80]!r} has a `*` elsewhere than at its end")
        lengths = {len(one) for one in self._beginnings}
        if len(beginning) not in lengths and len(lengths) >= MOST_LENGTHS:
            raise ValueError(f"there are beginnings of {MOST_LENGTHS} lengths already")
        self._beginnings[beginning] = value

    def _scale(self) -> None:
        """Put scores that go beyond 1 on a scale from 0 to 1, by their places among all."""
        values = sorted(value for table in self._tables() for value in table.values())
        if not values or values[-1] <= 1.0:
            return
        last = max(1, len(values) - 1)
        for table in self._tables():
            for what, value in table.items():
                table[what] = bisect_left(values, value) / last

    def site(self, host: str) -> float | None:
        """The importance of a host, 0 to 1; None where the file says nothing of it."""
        found = self._hosts.get(host)
        if found is None and self._below:
            found = next((self._below[name] for name in _above(host) if name in self._below), None)
        return self._hosts.get(registered_domain(host)) if found is None else found

    def page(self, url: str) -> float | None:
        """The importance of a URL, 0 to 1; None where the file says nothing of it."""
        found = self._urls.get(url)
        if found is not None or not self._lengths:
            return found
        return next((self._beginnings[url[:n]] for n in self._lengths if url[:n] in self._beginnings), None)

    @property
    def trouble(self) -> str:
        """What is to be said of bad lines; empty where there are none."""
        if not self.bad:
            return ""
        more = f"; and {self.bad - len(self.shown):,} more" if self.bad > len(self.shown) else ""
        return f"{self.bad:,} of {self.read:,} lines cannot be read and are left out: {'; '.join(self.shown)}{more}"


def _above(host: str) -> Iterator[str]:
    """The domains above a host, the nearest first."""
    while "." in host:
        host = host.partition(".")[2]
        yield host


def read_scores(name: str) -> Scores:
    """The scores of a file.

    Raises:
        SettingError: it cannot be read, or no line of it can.
    """
    try:
        with Path(name).open(encoding="utf-8-sig", errors="replace") as lines:
            scores = Scores(iter(lambda: lines.readline(LINE_BYTES + 1), ""))
    except OSError as error:
        raise SettingError(f"setting 'importance': {name}: {error.strerror}") from None
    except SettingError as error:
        raise SettingError(f"setting 'importance': {name}: {error}") from None
    if scores.bad and not len(scores):
        raise SettingError(f"setting 'importance': {name}: {scores.trouble}")
    return scores
