"""The triple store of a crawl has what the latest visit of each page found, whatever happened to it."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyoxigraph as oxigraph
import pytest

from gossamer.query.convert import convert
from gossamer.query.following import feed_all, feeds_of
from gossamer.rdf.store.store import TripleStore
from gossamer.rdf.terms import STRING
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Triple, Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]

NAME = "http://schema.org/name"


def said(name: str) -> tuple[Triple, ...]:
    return (("_:b1", NAME, name, STRING, ""), ("_:b1", "http://schema.org/next", "_:b2", "", ""))


def visited(page: Make, number: int, at: int, *names: str, **changes: Any) -> Visit:
    """The visit number `at`, of one page, which says these names."""
    one = page(number, triples=tuple(triple for name in names for triple in said(name)), **changes)
    return msgspec.structs.replace(one, id=f"69a42f80c1d2e3f4a5b6-{at}")


def commit(crawl: Any, *visits: Visit) -> None:
    crawl.commit(*visits)
    crawl.rows.committed(crawl.rows.ends())


def feed(directory: Path) -> TripleStore:
    """Feed the store as a process of its own would; it is open still."""
    store = TripleStore(directory)
    feed_all(directory, feeds_of(directory, store.consumers()))
    return store


def names(store: TripleStore) -> dict[str, set[str]]:
    """What pages are called, by their last part."""
    found: dict[str, set[str]] = {}
    for quad in store.open().quads_for_pattern(None, oxigraph.NamedNode(NAME), None, None):
        found.setdefault(quad.graph_name.value.rpartition("/")[2], set()).add(quad.object.value)
    return found


@pytest.fixture
def crawl(kept: Open) -> Any:
    return kept(tables=("pages", "triples"))


def test_a_page_that_is_visited_again_has_what_its_last_visit_found(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "old"), visited(page, 2, 2, "stays"))
    with feed(crawl.directory) as store:
        assert names(store) == {"1": {"old"}, "2": {"stays"}}
    commit(crawl, visited(page, 1, 3, "new"))
    with feed(crawl.directory) as store:
        assert names(store) == {"1": {"new"}, "2": {"stays"}}
        assert len(store.open()) == 4


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.CLIENT_ERROR])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_page_that_says_nothing_any_more_leaves_the_store(
    crawl: Any, page: Make, outcome: Outcome, at_once: bool
) -> None:
    before, after = visited(page, 1, 1, "old"), visited(page, 1, 2)
    after = msgspec.structs.replace(after, response=msgspec.structs.replace(after.response, outcome=outcome))
    commit(crawl, before)
    if not at_once:
        feed(crawl.directory).close()
    commit(crawl, after)
    with feed(crawl.directory) as store:
        assert names(store) == {}
        assert not list(store.open().named_graphs())


@pytest.mark.parametrize("outcome", [Outcome.NOT_MODIFIED, Outcome.TIMED_OUT, Outcome.SERVER_ERROR])
def test_an_answer_that_says_nothing_of_the_page_takes_nothing_away(crawl: Any, page: Make, outcome: Outcome) -> None:
    later = visited(page, 1, 2)
    later = msgspec.structs.replace(later, response=msgspec.structs.replace(later.response, outcome=outcome))
    commit(crawl, visited(page, 1, 1, "old"), later)
    with feed(crawl.directory) as store:
        assert names(store) == {"1": {"old"}}


def test_a_store_that_was_deleted_is_made_again(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "one"), visited(page, 2, 2, "two"), visited(page, 2, 3))
    for gone in ("triples", "triples/store", "triples/notes.sqlite"):
        feed(crawl.directory).close()
        path = crawl.directory / gone
        path.unlink() if path.is_file() else shutil.rmtree(path)
        with feed(crawl.directory) as store:
            assert names(store) == {"1": {"one"}}, gone


def test_a_store_of_a_machine_that_stopped_is_made_again(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "one"))
    with feed(crawl.directory) as store:
        # As power leaves it: the notes are ahead of what the disk got of the store.
        store.open().clear()
    with sqlite3.connect(crawl.directory / "triples/notes.sqlite") as notes:
        notes.execute("UPDATE notes SET value = 'another start' WHERE name = 'open since'")
    notes.close()
    with feed(crawl.directory) as store:
        assert names(store) == {"1": {"one"}}


def test_a_reprocess_makes_the_store_anew(crawl: Any, page: Make) -> None:
    from gossamer.storage.tables.places import TableManifest, run_file, table_files, write_manifest

    commit(crawl, visited(page, 1, 1, "one"), visited(page, 2, 2, "two"), visited(page, 2, 3))
    feed(crawl.directory).close()
    convert(crawl.directory, ended=True)
    [old] = table_files(crawl.directory, "triples").current
    run_file(crawl.directory, "triples", 1).write_bytes(old.read_bytes())
    write_manifest(crawl.directory, TableManifest(1, (f"triples/{old.name}",)))
    with feed(crawl.directory) as store:
        # The rows of `pages` are those of before, and have been taken: what they took away stays away all the same.
        assert names(store) == {"1": {"one"}}


def test_blank_nodes_of_two_pages_and_of_two_visits_are_apart(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "one"), visited(page, 2, 2, "two"))
    with feed(crawl.directory) as store:
        assert len({str(quad.subject) for quad in store.open()}) == 2
        linked = list(
            store.open().query("SELECT * { GRAPH ?g { ?a schema:next ?b } }", prefixes={"schema": "http://schema.org/"})
        )
        assert len(linked) == 2


def test_the_files_of_a_store_are_put_in_order_where_enough_is_new(crawl: Any, page: Make) -> None:
    commit(crawl, *(visited(page, number, number, "one") for number in range(1, 9)))
    with feed(crawl.directory) as store:
        assert not store.put_in_order(), "a small store needs none"
        assert not store.put_in_order(17)
        assert store.put_in_order(16)
        assert not store.put_in_order(1), "nothing is new"
        assert len(store.open()) == 16
    commit(crawl, visited(page, 9, 9, "two"))
    with feed(crawl.directory) as store:
        assert not store.put_in_order(1), "2 of 18 are new, which is less than a quarter"
    commit(crawl, visited(page, 10, 10, "three"))
    with feed(crawl.directory) as store:
        assert store.put_in_order(1)
        store.empty([])
        assert not store.put_in_order(1)


HOSTILE: list[Triple] = [
    ("http://a.test/> <http://evil.test/p> <http://evil.test/o> .\n<http://a.test/", NAME, "x", STRING, ""),
    ("http://a.test/s", NAME, 'x" <http://evil.test/g> .\n<http://evil.test/s> <http://evil.test/p> "', STRING, ""),
    ("http://a.test/s", NAME, "back\\slash\ttab\x00\x1b[31m\u202e", STRING, ""),
    ("http://a.test/s", NAME, "x", "", "en> <http://evil.test/g> .\n<"),
    ("http://a.test/s", NAME, "x", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "e n . #"),
    ("http://a.test/s", "no IRI", "x", STRING, ""),
    ("_:b1 <http://evil.test/p> _:b2 . _:b1", NAME, "x", STRING, ""),
]


def test_no_triple_of_a_page_says_anything_in_the_name_of_another(crawl: Any, page: Make) -> None:
    evil = msgspec.structs.replace(visited(page, 1, 1), triples=tuple(HOSTILE))
    commit(crawl, evil, visited(page, 2, 2, "good"))
    with feed(crawl.directory) as store:
        assert names(store)["2"] == {"good"}
        graphs = {quad.graph_name.value for quad in store.open()}
        assert graphs == {"http://a.test/1", "http://a.test/2"}
        assert not any("evil" in quad.predicate.value for quad in store.open())
        assert HOSTILE[2][2] in names(store)["1"]
        assert store.left_out.total() == len([one for one in HOSTILE if one[2] == "x"]), "what is left out is counted"


def test_a_page_whose_url_is_no_iri_has_a_graph(crawl: Any, page: Make) -> None:
    one = visited(page, 1, 1, "one")
    task = msgspec.structs.replace(one.task, url="http://a.test/?q={x}|%zz[]^")
    commit(crawl, msgspec.structs.replace(one, task=task))
    with feed(crawl.directory) as store:
        assert [graph.value for graph in store.open().named_graphs()] == ["http://a.test/?q=%7Bx%7D%7C%25zz%5B%5D%5E"]
    gone = visited(page, 1, 2)
    commit(crawl, msgspec.structs.replace(gone, task=task))
    with feed(crawl.directory) as store:
        assert not list(store.open().named_graphs())


def test_a_store_of_another_version_is_refused_in_one_line(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "one"))
    feed(crawl.directory).close()
    notes = sqlite3.connect(crawl.directory / "triples/notes.sqlite")
    notes.execute("UPDATE notes SET value = '999' WHERE name = 'version'")
    notes.commit()
    notes.close()
    with pytest.raises(CrawlDirectoryError, match=r"version 999.*delete it"):
        feed(crawl.directory)


def test_a_damaged_store_is_refused_in_one_line(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "one"))
    feed(crawl.directory).close()
    (crawl.directory / "triples/store/CURRENT").write_text("MANIFEST-999999\n")
    commit(crawl, visited(page, 2, 2, "two"))
    with pytest.raises(CrawlDirectoryError, match="delete"):
        feed(crawl.directory)


@pytest.mark.parametrize("files", ["CURRENT", "MANIFEST-*", "*.sst"])
def test_a_store_with_foreign_bytes_in_its_files_is_refused_in_one_line(crawl: Any, page: Make, files: str) -> None:
    commit(crawl, visited(page, 1, 1, "one"))
    feed(crawl.directory).close()
    found = list((crawl.directory / "triples/store").glob(files))
    assert found
    for path in found:
        path.write_bytes(b"x" * path.stat().st_size)
    commit(crawl, visited(page, 2, 2, "two"))
    with pytest.raises(CrawlDirectoryError, match=r"damaged.*delete") as caught:
        feed(crawl.directory)
    assert len(str(caught.value).splitlines()) == 1


def test_a_store_in_use_is_refused_in_one_line(crawl: Any, page: Make) -> None:
    commit(crawl, visited(page, 1, 1, "one"))
    with feed(crawl.directory) as store:
        store.open()
        with TripleStore(crawl.directory) as another, pytest.raises(CrawlDirectoryError, match="in use"):
            another.open()
