"""Requests that are no plain GET in the ledger: known by more than their URL, whole when popped, and told when they were begun."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.storage.ledger.layout import as_queued, pack, unpack
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.storage import visit
from gossamer.values.errors import UsageError
from gossamer.values.request_identity import MAX_BODY, MAX_DATA, Requested, requested
from gossamer.values.task import Task

URL = "http://a.test/form"

PARTS = st.builds(
    lambda method, body, key, label, data, safe: requested(
        method, body, (("X-One", "1"),), label, data, key, is_safe=safe
    ),
    st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
    st.binary(max_size=30),
    st.text("abc 12", max_size=5).map(str.strip),
    st.sampled_from(["", "forms"]),
    st.binary(max_size=5),
    st.sampled_from([None, True, False]),
)


def task(request: Requested | None = None, url: str = URL) -> Task:
    return Task(url, "a.test", depth=1, source="http://a.test/", relation="form action", request=request)


def opened(directory: Path) -> tuple[RocksLedger, LedgerFrontier]:
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    ledger.open()
    queues = LedgerFrontier()
    queues.ledger = ledger
    return ledger, queues


def push(ledger: RocksLedger, tasks: list[Task]) -> None:
    with ledger.group() as group:
        known = {one.identity: one for one in tasks}
        group.push(known[identity] for identity in group.offer(list(known)))


def popped(queues: LedgerFrontier) -> list[Task]:
    queues.admit(0.0)
    return queues.pop("a.test", 100)


def kept_requests(ledger: RocksLedger) -> int:
    return sum(1 for _ in ledger._store.scan("requests", b"", b"\xff" * 32))


def test_method_body_and_key_make_another_request_and_all_else_does_not() -> None:
    same = [None, requested(), requested(label="x"), requested(data=b"y"), requested(headers=(("A", "b"),))]
    assert {task(one).identity for one in same} == {URL}
    others = [requested("POST"), requested("POST", b"1"), requested("POST", b"2"), requested("PUT", b"1")]
    others += [requested(key="k"), requested("POST", b"1", key="k"), requested("POST", key="k"), requested(body=b"1")]
    assert len({task(one).identity for one in others} | {URL}) == len(others) + 1


@given(one=PARTS, other=PARTS)
def test_two_requests_are_one_exactly_if_method_body_and_key_are(one: Requested, other: Requested) -> None:
    def told(request: Requested) -> tuple[str, bytes, str]:
        return request.method, request.body, request.mark.partition(" ")[2].partition(" ")[2]

    assert (task(one).identity == task(other).identity) == (told(one) == told(other))
    assert task(one).identity.partition("\n")[0] == URL


@pytest.mark.parametrize(
    "parts",
    [
        {"method": "post"},
        {"method": "POST\r\nX: y"},
        {"body": bytes(MAX_BODY + 1)},
        {"data": bytes(MAX_DATA + 1)},
        {"key": "a\nb"},
        {"label": "x" * 257},
        {"headers": (("A", "b\r\nC: d"),)},
        {"headers": (("A b", "c"),)},
        {"headers": (("A", "b"),) * 65},
    ],
)
def test_what_cannot_be_kept_or_sent_is_refused(parts: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        requested(**parts)  # type: ignore[arg-type]


@given(requests=st.lists(st.one_of(st.none(), PARTS), max_size=8))
def test_a_chunk_has_marks_and_nothing_that_is_sent(requests: list[Requested | None]) -> None:
    tasks = [task(one) for one in requests]
    chunks = pack("a.test", tasks) if tasks else []
    assert [one for chunk in chunks for one in unpack(chunk)] == [as_queued(one) for one in tasks]


def test_a_plain_get_lies_as_it_did_before_there_were_others() -> None:
    [chunk] = pack("a.test", [task()])
    [_, [run]] = msgspec.msgpack.decode(chunk)
    assert run == ["http://a.test/", "form action", 1, 1, 0, [URL]]


def test_a_request_is_popped_whole_also_after_a_kill_and_kept_no_longer_than_it_is_needed(tmp_path: Path) -> None:
    large = requested("POST", b"x" * MAX_BODY, (("A", "b"),), "label", b"data", "key", is_safe=True)
    tasks = [task(), task(large), task(requested("PUT", b"1"))]
    ledger, queues = opened(tmp_path)
    push(ledger, [*tasks, *tasks])
    for _ in range(2):
        assert popped(queues) == tasks
        ledger.abandon()
        ledger, queues = opened(tmp_path)
    found = popped(queues)
    queues.put_back(found[1])
    assert queues.pop("a.test", 9) == [tasks[1]]
    for number, one in enumerate(found, 1):
        with ledger.group() as group:
            assert group.visited(msgspec.structs.replace(visit(one.url), task=one), None)
        assert kept_requests(ledger) == [2, 1, 0][number - 1]
    assert len(queues) == 0
    push(ledger, tasks)
    assert len(queues) == 0, "a request that was done is seen"
    assert ledger.document(tasks[1].identity) is not None
    ledger.close()


def test_a_request_is_whole_again_when_it_is_tried_later(tmp_path: Path) -> None:
    one = task(requested("POST", b"body"))
    ledger, queues = opened(tmp_path)
    push(ledger, [one])
    [found] = popped(queues)
    again = msgspec.structs.replace(found, attempt=2)
    with ledger.group() as group:
        group.begun(found)
    with ledger.group() as group:
        assert group.done(found.identity)
        group.later(again, 100.0)
    ledger.abandon()
    ledger, queues = opened(tmp_path)
    assert queues.wake(100.0) == 1
    assert popped(queues) == [again], "it was not sent, so it may be"
    ledger.close()


def test_a_request_that_was_begun_is_told_from_others_after_a_kill_and_by_no_other_reader(tmp_path: Path) -> None:
    begun, other = task(requested("POST", b"1")), task(requested("POST", b"2"))
    ledger, queues = opened(tmp_path)
    push(ledger, [begun, other])
    first = popped(queues)
    assert first == [begun, other]
    with ledger.group() as group:
        group.begun(first[0])
    queues.put_back(first[0])
    assert queues.pop("a.test", 1) == [begun], "who began it knows what became of it"
    for _ in range(2):
        ledger.abandon()
        ledger, queues = opened(tmp_path)
        assert [(one.identity, one.request and one.request.was_begun) for one in popped(queues)] == [
            (begun.identity, True),
            (other.identity, False),
        ]
    ledger.close()


def test_the_same_request_queued_twice_is_whole_both_times(tmp_path: Path) -> None:
    one = task(requested("POST", b"body"))
    ledger, queues = opened(tmp_path)
    with ledger.group() as group:
        group.push([one, one])
    assert popped(queues) == [one, one]
    with ledger.group() as group:
        assert group.done(one.identity)
    assert kept_requests(ledger) == 1
    with ledger.group() as group:
        assert group.done(one.identity)
    assert kept_requests(ledger) == 0
    ledger.close()


@pytest.mark.parametrize("private", [True, False])
def test_a_private_ledger_is_closed_to_others(tmp_path: Path, private: bool) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path), private=private))
    ledger.open()
    ledger.checkpoint("one")
    folders = (ledger.places.ledger, ledger.places.checkpoints)
    ledger.close()
    assert all((folder.stat().st_mode & 0o077 == 0) is private for folder in folders)
