"""Seen sets keep their three promises under any interleaving."""

from hypothesis import given
from hypothesis import strategies as st

from gossamer.storage.seen.memory import MemorySeen, RecentlySeen, RecentlySeenSheet

URLS = st.lists(st.sampled_from([f"http://a.test/{n}" for n in range(12)]), max_size=8)


@given(capacity=st.integers(1, 14), batches=st.lists(st.tuples(st.booleans(), URLS), max_size=40))
def test_each_new_url_comes_out_once(capacity: int, batches: list[tuple[bool, list[str]]]) -> None:
    seen = RecentlySeen(RecentlySeenSheet(capacity=capacity))
    seen.behind = MemorySeen()
    known: set[str] = set()
    for only_ask, batch in batches:
        if only_ask:
            assert [url for url in batch if url not in known] == [url for url in seen.unseen(batch) if url not in known]
        else:
            assert seen.offer(batch) == list(dict.fromkeys(url for url in batch if url not in known))
            known.update(batch)
