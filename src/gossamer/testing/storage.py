"""Conformance suites for what a crawl keeps: archives, keepers, stores, seen sets and content indexes; and visits as the commit
receives them.
"""

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec

from gossamer.backup.contract import ABSENT, ObjectChanged, ObjectMissing, Store
from gossamer.storage.archive.contract import Archive, Keeper
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.seen.contract import THRESHOLD, ContentIndex, FingerprintIndex, LateSeenSet, SeenSet, distance
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Item, Location, Record, Response, Visit

#: Texts that servers send in order to end a record, begin one, or forge a field (faults 19, 67, 70).
HOSTILE_TEXTS = (
    "a\r\nWARC-Type: warcinfo",
    "a\nb",
    "\r\n\r\nWARC/1.1\r\n",
    "\x00\x1b[31m\x7f\x9b31m",
    "\u202eevil\u2066\u200f\u2028\u2029\x85",
    "\ufeff\ufffe",
    '"}\n{"event":"page"',
)

#: Header blocks that a server can send.
HOSTILE_HEADS = (
    b"HTTP/1.1 200 OK\r\nX: a\r\n\r\nWARC/1.1\r\nWARC-Type: warcinfo\r\n\r\n",
    b"HTTP/1.1 200 OK\nLF: only\n\nmore: lines\n\n",
    b"HTTP/1.1 200 \x00\x1b[0m\r\nBare: a\rb\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nFolded: a\r\n b\r\nEight: \xff\xfe\r\n\r\n",
    b"ICY 200 OK\r\n\r\n",
    b"\r\n\r\n",
    b"HTTP/1.1 200 OK",
)


def visit(
    url: str = "http://a.test/",
    body: bytes = b"<p>hello",
    *,
    head: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
    outcome: Outcome = Outcome.OK,
    duplicate_of: str = "",
    cut: str = "",
) -> Visit:
    """Return a visit as the committer receives it."""
    return Visit(
        task=Task(url, host="a.test"),
        response=Response(
            outcome,
            status=200,
            request_head=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            response_head=head,
            headers=(("content-type", "text/html"),),
            body=body,
            address="127.0.0.1",
            started=1_700_000_000.25,
            elapsed=0.125,
            cut=cut,
        ),
        digest=sha1_base32(body),
        duplicate_of=duplicate_of,
    )


def unanswered(url: str = "http://a.test/gone") -> Visit:
    """Return a visit without an answer."""
    return Visit(Task(url, host="a.test"), Response(Outcome.CONNECT_FAILED, error="refused", started=1_700_000_000.0))


def hostile_visits() -> list[Visit]:
    """Return visits in which every field that a server or a page can write is hostile."""
    found = [visit(head=head, body=b"\r\n\r\nWARC/1.1\r\n\r\n") for head in HOSTILE_HEADS]
    for text in HOSTILE_TEXTS:
        one = visit(url=f"http://a.test/{text}", duplicate_of=f"http://a.test/{text}", cut=text)
        response = msgspec.structs.replace(one.response, address=text, error=text, headers=(("content-type", text),))
        found.append(
            msgspec.structs.replace(
                one,
                response=response,
                title=text,
                charset=text,
                trouble=text,
                items=(Item(text, one.url, {text: [text]}),),
                rejected={text: 1},
            )
        )
    return found


def check_archive(archive: Archive, read: Callable[[Location], tuple[str, str, bytes]]) -> None:
    """Check that an archive keeps its promises.

    Args:
        archive: empty.
        read: opens a location as another process would, and returns the record's type, target URI and block.
    """
    assert archive.append([]) == [], "an empty group has no locations"
    assert archive.append([unanswered()]) == [None], "a visit without an answer is not written: its location is None"
    mixed = [visit("http://a.test/1", b"one"), unanswered(), visit("http://a.test/2", b"two")]
    _check_group(archive, mixed, read)
    _check_group(archive, [visit("http://a.test/3", b"one", duplicate_of="http://a.test/1")], read)
    _check_group(archive, hostile_visits(), read)
    archive.ends()
    assert not archive.ends(), "ends are those since the last call"


def _check_group(archive: Archive, visits: Sequence[Visit], read: Callable[[Location], tuple[str, str, bytes]]) -> None:
    locations = archive.append(visits)
    ends = archive.ends()
    assert len(locations) == len(visits), "one location for each visit, in order"
    for one, location in zip(visits, locations, strict=True):
        assert location is None or ends[location.file] >= location.offset + location.length, (
            "ends lie behind every record"
        )
        assert (location is None) == (not one.is_answered), "a location for each answered visit, and for no other"
        if location is None:
            continue
        kind, uri, block = read(location)
        assert kind == ("revisit" if one.duplicate_of else "response"), f"a {kind} record where the answer should be"
        assert not {"\r", "\n"} & set(uri), "a URL forged a field"
        if one.url.isascii() and one.url.isprintable():
            assert uri == one.url, f"{uri} where {one.url} was archived"
        end = block.find(b"\r\n\r\n") + 4
        body = b"" if one.duplicate_of else one.response.body
        assert block[end:] == body, "the header block ends elsewhere, or the body is not as it came"


#: Closes what is open as a kill would, opens the ledger again, cuts files back to its ends with the keeper's own `files`
#: (`gossamer.storage.recovery.restore`), and starts a keeper, as a crawl does that goes on. At first all is empty.
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
    ledger, keeper = reopen()
    expected: list[str] = []
    numbers = count(1)

    def made() -> list[Record]:
        """An answer, a visit without one and another answer, of a group of their own."""
        number = next(numbers)
        base = f"http://a.test/{number}"
        return [
            Record(visit(f"{base}/1", b"one"), Location("warc/a.warc.gz", number, 1)),
            Record(unanswered(f"{base}/gone"), None),
            Record(visit(f"{base}/2", b"two" * 1000), Location("warc/a.warc.gz", number + 1, 1)),
        ]

    def commit(records: Sequence[Record]) -> None:
        with ledger.group() as group:
            keeper.stage(records, group)
            ends = keeper.ends()
            for file, end in ends.items():
                size = (directory / file).stat().st_size
                assert size == end, f"{file} has {size} bytes, and is said to end at {end}"
                group.written(file, end)
        keeper.committed(ends)
        assert not keeper.ends(), "ends are those since the last call"
        expected.extend(one.visit.url for one in records if wanted(one.visit))

    def check(trouble: str) -> None:
        found = sorted(kept())
        lost = [url for url in expected if url not in found]
        assert found == sorted(expected), f"{trouble}: {len(found)} kept, {len(expected)} expected, lost: {lost[:3]}"

    check("something is kept before anything was committed")
    with ledger.group() as group:
        keeper.stage([], group)
    check("a group without visits left something")
    commit(made())
    check("a committed group is not there")
    for how in ("an error", "a kill", "a kill behind the ends") * 2:
        records = made()
        with suppress(_Failed), ledger.group() as group:
            keeper.stage(records, group)
            for file, end in keeper.ends().items() if how == "a kill behind the ends" else ():
                group.written(file, end)
            raise _Failed
        if how == "an error":
            keeper.take_back()
            assert not keeper.ends(), "a file was named that was taken back"
        else:
            ledger, keeper = reopen()
        check(f"a group that failed left something ({how})")
        commit(records)
        check("a group that was given again is not there once")
        commit(made())
        check("the group behind one that failed is not there once")
    for _ in range(3):  # a kill behind a commit, and one at the next start
        commit(made())
        reopen()
        ledger, keeper = reopen()
        check("a group that was committed before a kill is not there once")
    commit([Record(one, None) for one in hostile_visits()])
    reopen()
    check("text that a server can send was kept with changes, or in part")


#: Writers of one object at once.
_WRITERS = 8


def check_store(store: Store) -> None:
    """Check every promise of a store that is empty, and leave it empty."""
    assert list(store.list("a/")) == [], "a store with nothing in it lists nothing"
    _must_raise(ObjectMissing, lambda: store.get("a/none"), "an object that is not there has no bytes")
    _must_raise(ObjectMissing, lambda: store.stat("a/none"), "an object that is not there has no size")
    first = store.put("a/b/one", b"0123456789")
    assert store.get("a/b/one") == b"0123456789", "an object has the bytes that were put"
    assert store.get("a/b/one", 3, 4) == b"3456", "a range has these bytes"
    assert store.get("a/b/one", 8, 9) == b"89", "a range that goes beyond the end has what is there"
    assert store.get("a/b/one", 10, 1) == b"", "a range behind the end has nothing"
    seen = store.stat("a/b/one")
    assert (seen.size, seen.tag) == (10, first), "an object has the size and the tag of its bytes"
    assert seen.modified > 0, "an object says when it was put"
    assert store.read("a/b/one") == (b"0123456789", seen), "an object is read whole, with what is known of it"
    _must_raise(ObjectMissing, lambda: store.read("a/none"), "an object that is not there is not read")
    second = store.put("a/b/one", b"other")
    assert store.get("a/b/one") == b"other", "an object is replaced whole"
    assert first != second == store.stat("a/b/one").tag, "other bytes have another tag"
    _must_raise(ObjectChanged, lambda: store.put("a/b/one", b"x", ABSENT), "an object that is there is not made")
    _must_raise(ObjectChanged, lambda: store.put("a/b/one", b"x", first), "an object that has changed is not replaced")
    _must_raise(ObjectChanged, lambda: store.put("a/none", b"x", first), "an object that is gone is not replaced")
    assert store.get("a/b/one") == b"other", "an object that was not replaced is as it was"
    third = store.put("a/b/one", b"third", second)
    assert store.stat("a/b/one").tag == third, "an object that has not changed is replaced"
    store.put("a/empty", b"", ABSENT)
    assert store.get("a/empty") == b"", "an object may be empty"
    large = bytes(range(256)) * 40_000
    store.put("ab/large", memoryview(large))
    assert store.get("ab/large", 9_999_999, 3) == large[9_999_999:10_000_002], "a large object has all its bytes"
    assert sorted(store.list("a/")) == ["a/b/one", "a/empty"], "what is below a prefix is listed, and nothing else"
    _one_of_many_wins(store, ABSENT)
    _one_of_many_wins(store, store.stat("ab/raced").tag)
    store.delete(["a/b/one", "a/empty", "a/none", "ab/large", "ab/raced"])
    assert [*store.list("a/"), *store.list("ab/")] == [], (
        "what is deleted is gone, and what was never there does no harm"
    )


def _one_of_many_wins(store: Store, expect: str) -> None:
    won: list[int] = []

    def write(number: int) -> None:
        try:
            store.put("ab/raced", f"writer {number} of those that expect {expect!r}".encode(), expect)
        except ObjectChanged:
            return
        won.append(number)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(_WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(won) == 1, "of several that expect the same, one replaces the object"
    assert store.get("ab/raced").startswith(f"writer {won[0]} ".encode()), (
        "the object has the bytes of the one that did"
    )


def _must_raise(kind: type[Exception], do: Callable[[], object], promise: str) -> None:
    try:
        do()
    except kind:
        return
    raise AssertionError(promise)


def check_seen_set(seen: SeenSet | LateSeenSet, *, urls: int = 2_000, seed: int = 1) -> None:
    """Check that a seen set keeps its three promises under random interleavings; one that answers later keeps its fourth too.

    Args:
        seen: empty.
        urls: number of different URLs that are offered, more than any cache inside holds.
        seed: of their random order; popular URLs come often, as on the web.
    """
    known = [f"http://host{n % 7}.test/path/{n}?q={n}" for n in range(urls)]
    choose = random.Random(seed)
    came_out: list[str] = []
    offered: set[str] = set()
    assert seen.unseen([]) == [], "an empty call has an empty result"
    assert seen.offer([]) == [], "an empty call has an empty result"
    while len(offered) < urls:
        batch = [known[int(urls * choose.random() ** 2)] for _ in range(choose.randrange(1, 80))]
        if choose.random() < 0.02:
            batch += [url for url in known if url not in offered][:100]
        maybe = seen.unseen(batch, choose.randrange(5))
        assert [url for url in batch if url in set(maybe)] == maybe, "unseen keeps the order of what it was asked"
        assert not [url for url in batch if url not in offered and url not in maybe], "unseen held back a new URL"
        new = seen.offer(batch)
        expected = list(dict.fromkeys(url for url in batch if url not in offered))
        assert not set(new) - set(batch), "a URL came out that was not offered"
        offered.update(batch)
        if isinstance(seen, LateSeenSet):
            new += seen.drain(choose.randrange(1, 50))
            assert not set(new) - offered, "a URL came out that was not offered"
        else:
            assert new == expected, "the new URLs of a batch come out of it, in order"
        assert len(set(new)) == len(new), "a URL came out twice of one batch"
        assert not set(new) & set(came_out), "a URL came out twice"
        came_out += new
    came_out += _rest(seen)
    assert len(set(came_out)) == len(came_out), "a URL came out twice"
    assert set(came_out) == offered, "a new URL never came out, or one that was not offered did"
    assert seen.offer(known) == [] and _rest(seen) == [], "a URL came out twice"


def _rest(seen: SeenSet | LateSeenSet) -> list[str]:
    """Return the output of a set that answers later, once it has decided everything."""
    rest: list[str] = []
    if isinstance(seen, LateSeenSet):
        asyncio.run(seen.settle())
        while more := seen.drain(100):
            rest += more
    return rest


def check_content_index(index: ContentIndex) -> None:
    """Check that a content index, empty at first, keeps its promise."""
    assert index.first("A" * 32, "http://a.test/1") == "", "a new digest has no first URL"
    assert index.first("B" * 32, "http://a.test/2") == "", "another new digest has no first URL"
    for _ in range(2):
        assert index.first("A" * 32, "http://a.test/3") == "http://a.test/1", "the first URL stays the answer"
    assert index.first("A" * 32, "http://a.test/1") == "http://a.test/1", "the first URL stays the answer for itself"
    assert index.first("B" * 32, "http://a.test/3") == "http://a.test/2", "each digest has its own"


def check_fingerprint_index(index: FingerprintIndex, *, pages: int = 500, seed: int = 1) -> None:
    """Check that an index of fingerprints keeps its promises, whichever bits differ.

    Args:
        index: empty, with room for all pages.
        pages: number of pages.
        seed: of the random fingerprints; a third of them are near an earlier one, or just beyond that.
    """
    choose = random.Random(seed)
    remembered: dict[str, int] = {}
    given: list[int] = []
    for number in range(pages):
        fingerprint = choose.getrandbits(64) | 1
        if given and choose.random() < 0.4:
            fingerprint = choose.choice(given)
            for bit in choose.sample(range(64), choose.randrange(THRESHOLD + 3)):
                fingerprint ^= 1 << bit
        url = f"http://a.test/{number}"
        near = [known for known, other in remembered.items() if distance(fingerprint, other) <= THRESHOLD]
        answer = index.near(fingerprint, url)
        assert answer in near if near else not answer, f"{answer or 'nothing'} is not near, or something else is"
        if not answer:
            remembered[url] = fingerprint
        given.append(fingerprint)
