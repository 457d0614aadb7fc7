"""Conformance suites for seen sets, content indexes and sieves."""

import asyncio
import random

from gossamer.documents.terms import THRESHOLD, distance
from gossamer.storage.seen.contract import ContentIndex, FingerprintIndex, LateSeenSet, SeenSet


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
