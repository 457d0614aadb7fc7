"""Near-duplicates, disowned links and requisites, as the stages behind process see them."""

import msgspec
import pytest

from gossamer.parsing.duplicates import NearDuplicates, NearDuplicatesSheet
from gossamer.parsing.filters import NofollowFilter, NofollowSheet
from gossamer.parsing.scope import ScopeFilter, ScopeSheet
from gossamer.storage.seen.memory import MemoryFingerprints
from gossamer.testing.storage import visit
from gossamer.values.task import Task
from gossamer.values.visit import Found, Link, Visit

SEED = "http://a.test/"


def page(number: int, simhash: int, **more: object) -> Visit:
    return msgspec.structs.replace(visit(f"http://a.test/{number}"), simhash=simhash, found=(Found("x"),), **more)


def compared(*pages: Visit, skip: bool = False) -> list[Visit]:
    stage = NearDuplicates(NearDuplicatesSheet(skip=skip))
    stage.index = MemoryFingerprints()
    return [stage.filter(one)[0] for one in pages]


def test_near_duplicates_are_named_and_kept() -> None:
    first, near, far = compared(page(1, 0xFF00), page(2, 0xFF07), page(3, 0xFF0F))
    assert (first.near_duplicate_of, near.near_duplicate_of, far.near_duplicate_of) == ("", first.url, "")
    assert near.found and near.is_page and not near.discarded


def test_near_duplicates_can_be_dropped() -> None:
    first, near = compared(page(1, 0xFF00), page(2, 0xFF07), skip=True)
    assert first.found and first.is_page
    assert (near.found, near.is_page, near.discarded) == ((), False, "near-duplicate")
    assert near.barred == {"store": "near-duplicate"}


@pytest.mark.parametrize("more", [{"simhash": 0}, {"duplicate_of": "http://a.test/0"}, {"discarded": "language:de"}])
def test_some_pages_are_not_compared(more: dict[str, object]) -> None:
    one = msgspec.structs.replace(page(1, 5), **more)
    assert compared(one, page(2, 5))[1].near_duplicate_of == ""


def test_disowned_links_are_refused_by_default() -> None:
    links = [Link(SEED), Link("http://a.test/x", nofollow=True)]
    assert NofollowFilter().judge(links, Task(SEED, "a.test")) == ["", "nofollow"]
    assert NofollowFilter(NofollowSheet(follow=True)).judge(links, Task(SEED, "a.test")) == ["", ""]


def test_requisites_leave_the_scope_one_hop_far() -> None:
    scope = ScopeFilter(ScopeSheet(seeds=(SEED,), requisites=True))
    picture, sheet = Link("http://b.test/p", "img src"), Link("http://b.test/s", "link stylesheet")
    elsewhere = Link("http://b.test/", "a href")
    inside = Task(SEED, "a.test")
    assert scope.judge([picture, sheet, elsewhere], inside) == ["", "", "scope:host"]
    style = Task("http://b.test/s", "b.test", relation="link stylesheet")
    assert scope.judge([Link("http://c.test/f", "css url"), picture], style) == ["", "scope:host"]
    assert set(ScopeFilter(ScopeSheet(seeds=(SEED,))).judge([picture, sheet], inside)) == {"scope:host"}
