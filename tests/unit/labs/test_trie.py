"""The trie of URLs: what goes beyond the contract of seen sets."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.labs.trie.chunks import key_of, url_of
from gossamer.labs.trie.queues import TrieSeen, TrieSeenSheet, TrieTurns
from gossamer.labs.trie.tree import DiskTrie
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.errors import CrawlDirectoryError

pytestmark = pytest.mark.stores

HOSTS = [
    "example.org",
    "www.example.org",
    "example.com",
    "a.test:8080",
    "192.0.2.1",
    "192.0.2.1:81",
    "[2001:db8::1]",
    "[::1]:90",
    "org",
]

PATHS = ["", "/", "//", "/a", "/a/", "/a/b", "/a//b", "/a/b/", "/b", "/ab", "/ab?a=/", "/?a=/", "/a/b/a?b"]

URLS = st.builds(
    lambda scheme, host, path: f"{scheme}://{host}{path}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(HOSTS),
    st.sampled_from(PATHS),
)


class Crawl:
    """A ledger and a trie in one directory, opened again as after a kill."""

    def __init__(self, directory: Path, **sheet: int) -> None:
        self.directory, self.sheet = directory, sheet
        self.open()

    def open(self) -> None:
        self.ledger = RocksLedger(LedgerSheet(directory=str(self.directory)))
        self.ledger.open()
        self.seen = TrieSeen(TrieSeenSheet(directory=str(self.directory), **self.sheet))
        self.seen.ledger = self.ledger
        self.seen.open()

    def offer_and_fail(self, url: str) -> None:
        with self.ledger.group():
            assert self.seen.offer([url]) == [url]
            raise RuntimeError

    def kill(self) -> None:
        self.seen.abandon()
        self.ledger.abandon()

    def end(self) -> None:
        self.seen.close()
        self.ledger.close()


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    crawl = Crawl(tmp_path, gathered=50, cache=2)
    yield crawl
    crawl.end()


@settings(deadline=None)
@given(URLS)
def test_a_url_can_be_told_from_its_key(url: str) -> None:
    assert url_of(key_of(url)) == url


@settings(deadline=None, max_examples=40)
@given(batches=st.lists(st.lists(URLS, max_size=8), max_size=8), gathered=st.sampled_from([1, 5, 1_000]))
def test_it_knows_what_a_set_knows(
    batches: list[list[str]], gathered: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    crawl, known = Crawl(tmp_path_factory.mktemp("trie"), gathered=gathered, cache=0), set[str]()
    for batch in batches:
        assert crawl.seen.unseen(batch) == [url for url in batch if url not in known]
        assert crawl.seen.offer(batch) == list(dict.fromkeys(url for url in batch if url not in known))
        known.update(batch)
        assert len(crawl.seen) == len(known)
    for host in ["org", "example.org", "192.0.2.1", "test", "[::1]", "[2001:db8::1]"]:
        names = {url: url.split("/")[2] for url in known}
        below = {url for url, name in names.items() if _is_below(name, host)}
        assert set(crawl.seen.under(host)) == below and crawl.seen.count(host) == len(below)
    crawl.end()


def _is_below(authority: str, domain: str) -> bool:
    host = authority if authority.endswith("]") else authority.rpartition(":")[0] or authority
    return host == domain or host.endswith(f".{domain}")


def test_a_domain_is_forgotten_whole_and_nothing_else(crawl: Crawl) -> None:
    crawl.seen.offer(
        ["http://example.org/", "http://www.example.org/a/b", "https://www.example.org/a", "http://example.com/"]
    )
    assert crawl.seen.forget("example.org") == 3
    assert crawl.seen.forget("example.org") == crawl.seen.forget("never.test") == 0
    assert list(crawl.seen.under("com")) == ["http://example.com/"] and len(crawl.seen) == 1
    crawl.kill()
    crawl.open()
    assert crawl.seen.offer(["http://example.org/", "http://example.com/"]) == ["http://example.org/"]


def test_a_path_of_a_thousand_parts_is_no_trouble(crawl: Crawl) -> None:
    deep = ["http://a.test" + "/x" * number for number in range(1_000)]
    assert crawl.seen.offer([*deep, deep[-1]]) == deep
    crawl.end()
    crawl.open()
    assert sorted(crawl.seen.under("a.test")) == deep


@pytest.mark.parametrize("kill", ["before the group", "in the group", "after the group"])
def test_a_kill_leaves_what_the_ledger_has_kept(crawl: Crawl, kill: str) -> None:
    kept = [f"http://h{n % 7}.test/{n}" for n in range(60)]
    for start in range(0, 60, 12):
        with crawl.ledger.group():
            crawl.seen.offer(kept[start : start + 12])
    if kill == "in the group":
        with pytest.raises(RuntimeError):
            crawl.offer_and_fail("http://lost.test/")
    if kill == "after the group":
        with crawl.ledger.group():
            crawl.seen.offer(["http://kept.test/"])
    crawl.kill()
    crawl.open()
    assert crawl.seen.unseen([*kept, "http://lost.test/"]) == ["http://lost.test/"]
    assert crawl.seen.unseen(["http://kept.test/"]) == ([] if kill == "after the group" else ["http://kept.test/"])


def test_what_a_failed_group_offered_is_new_again(crawl: Crawl) -> None:
    with pytest.raises(RuntimeError):
        crawl.offer_and_fail("http://a.test/1")
    assert crawl.seen.unseen(["http://a.test/1"]) == ["http://a.test/1"]
    assert crawl.seen.offer(["http://a.test/2"]) == ["http://a.test/2"]
    assert crawl.seen.offer(["http://a.test/1", "http://a.test/2"]) == ["http://a.test/1"]


def test_a_log_that_is_gone_is_named(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.seen.offer(["http://a.test/1"])
    crawl.kill()
    next(crawl.seen.home.glob("offers-*")).unlink()
    with pytest.raises(CrawlDirectoryError, match="were committed: it is damaged"):
        crawl.open()
    crawl.ledger.abandon()


@pytest.mark.parametrize("cache", [0, 3, 1_000])
def test_chunks_are_divided_written_and_put_in_order(tmp_path: Path, cache: int) -> None:
    choose, known = random.Random(3), set[str]()
    for life in range(4):
        trie = DiskTrie(tmp_path, cache)
        assert len(trie) == len(known)
        for turn in range(4):
            for _ in range(500):
                key = f"test.h{choose.randrange(9)} http:/{choose.randrange(10 ** choose.randrange(1, 7))}"
                assert trie.holds(key) == (key in known)
                assert trie.put(key) == (key not in known)
                known.add(key)
            trie.checkpoint()
            if turn == 1 and life:
                gone = {key for key in known if key.startswith(f"test.h{life} ")}
                assert trie.forget(f"test.h{life} ") == len(gone)
                known -= gone
                trie.checkpoint()
        assert set(trie.under("")) == known
        assert trie.in_memory <= cache + 1
        trie.close()
    assert len(list(tmp_path.glob("chunks-*"))) == 1


def test_every_branch_takes_turns(tmp_path: Path) -> None:
    trie = DiskTrie(tmp_path)
    turns = TrieTurns(trie)
    urls = [
        f"http://{host}/{page}"
        for host in ("a.big.test", "b.big.test", "c.big.test", "small.test")
        for page in range(3)
    ]
    assert all(map(turns.push, urls)) and not turns.push(urls[0])
    order = [turns.take() or "" for _ in urls]
    assert sorted(order) == sorted(urls) and turns.take() is None
    domains = [url.split("/")[2].removeprefix("a.").removeprefix("b.").removeprefix("c.") for url in order]
    assert domains[:6] == ["big.test", "small.test"] * 3, "a domain with more hosts has no more turns"
    hosts = [url.split("/")[2] for url in order if "big" in url]
    assert all(before != after for before, after in pairwise(hosts)), "nor does a host come twice while others wait"
    trie.close()


def test_the_seeds_list_is_taken_by_turns(tmp_path: Path) -> None:
    trie = DiskTrie(tmp_path)
    turns = TrieTurns(trie)
    for host in "123":
        for page in "123":
            turns.push(f"http://www.{host}.com/page{page}")
    taken = [turns.take() or "" for _ in range(9)]
    assert taken == [f"http://www.{host}.com/page{page}" for page in "123" for host in "123"]
    trie.close()


def test_what_was_taken_and_not_finished_waits_again_after_a_kill(tmp_path: Path) -> None:
    choose = random.Random(1)
    urls = [f"http://h{n % 13}.test/{n}" for n in range(1_500)]
    finished: Counter[str] = Counter()
    trie = DiskTrie(tmp_path, 2)
    turns = TrieTurns(trie)
    for url in urls:
        turns.push(url)
    trie.checkpoint()
    log: list[str] = []
    while True:
        url = turns.take()
        if url is None:
            break
        if choose.random() < 0.9:
            turns.done(url)
            log.append(url)
            finished[url] += 1
        if choose.random() < 0.02:
            trie.checkpoint(0, tuple(turns.taken))
            log.clear()
        if choose.random() < 0.01 or (not len(turns) and turns.taken):
            trie.close()
            trie = DiskTrie(tmp_path, 2)
            turns = TrieTurns(trie)
            assert all(map(turns.done, log)), "what was finished since the checkpoint is told again"
    assert finished == Counter(urls)
    trie.close()
