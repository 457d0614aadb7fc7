"""What readers other than ours find in an archive of ours."""

import asyncio
import errno
import gzip
import io
import itertools
import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.storage.archive.records import (
    MOST_STORED,
    NOT_MODIFIED_PROFILE,
    REVISIT_PROFILE,
    http_head,
    record_id,
    text_field,
    uri_field,
)
from gossamer.storage.archive.warc import UNVERIFIED, WarcArchive, WarcSheet
from gossamer.storage.recovery import restore
from gossamer.testing.clock import FakeClock
from gossamer.testing.storage import HOSTILE_HEADS, HOSTILE_TEXTS, hostile_visits, unanswered, visit
from gossamer.values.body import BodyWriter, StoredBody, sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Visit


def archive(directory: Path, **values: Any) -> WarcArchive:
    made = WarcArchive(WarcSheet(directory=str(directory), **values))
    made.clock = FakeClock(1_700_000_000.0)
    return made


def break_disk(monkeypatch: pytest.MonkeyPatch, folder: Path, error: int = errno.EIO, *, from_byte: int = 1) -> None:
    """From now on the system refuses to write to files of this folder that have so many bytes."""
    write = os.write

    def writing(descriptor: int, data: Any) -> int:
        file = os.fstat(descriptor)
        if file.st_size >= from_byte and file.st_ino in {path.lstat().st_ino for path in folder.glob("*")}:
            raise OSError(error, os.strerror(error))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)


def records(directory: Path) -> list[dict[str, Any]]:
    """Every record of every file, in order: fields by name in lower case, and the block as `block`."""
    found = []
    for path in sorted(directory.glob("warc/*")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                fields = {name.lower(): value for name, value in record.rec_headers.headers}
                fields["block"] = record.content_stream().read()
                fields["http"] = record.http_headers
                found.append(fields)
    return found


def test_a_file_opens_with_warcinfo_and_each_exchange_is_two_linked_records(tmp_path: Path) -> None:
    archive(tmp_path, operator="Ann", contact="ann@a.test", user_agent="Gossamer/1", description="x\ny: z").append(
        [visit()]
    )
    info, request, response = records(tmp_path)
    assert info["warc-type"] == "warcinfo"
    assert b"operator: Ann <ann@a.test>\r\n" in info["block"]
    assert b"description: x y: z\r\n" in info["block"]
    assert (request["warc-type"], response["warc-type"]) == ("request", "response")
    assert request["warc-concurrent-to"] == response["warc-record-id"]
    assert response["warc-date"] == "2023-11-14T22:13:20.250000Z"
    assert response["warc-ip-address"] == "127.0.0.1"
    assert response["warc-payload-digest"] == f"sha1:{sha1_base32(response['block'])}"
    assert response["http"].get_statuscode() == "200"


def stored(body: bytes) -> StoredBody:
    writer = BodyWriter(0, digest=True)
    writer.write(body)
    taken = writer.take()
    assert isinstance(taken, StoredBody)
    return taken


def test_a_body_on_disk_is_archived_like_one_in_memory(tmp_path: Path) -> None:
    small, large = visit(body=b"small"), visit("http://a.test/large", bytes(range(256)) * 4000)
    spilled = msgspec.structs.replace(
        large, response=msgspec.structs.replace(large.response, body=stored(bytes(range(256)) * 4000))
    )
    for name, group in (("memory", [small, large, small]), ("disk", [small, spilled, small])):
        locations = archive(tmp_path / name).append(group)
        [path] = (tmp_path / name).glob("warc/*")
        assert [location is not None and gzip.decompress(path.read_bytes()[location.offset :][: location.length])[:8]
                for location in locations] == [b"WARC/1.1"] * 3  # fmt: skip
        assert locations[-1] is not None
        assert locations[-1].offset + locations[-1].length == path.stat().st_size
    differing = {"warc-record-id", "warc-concurrent-to", "http"}
    in_memory, on_disk = (
        [{k: v for k, v in record.items() if k not in differing} for record in records(tmp_path / name)]
        for name in ("memory", "disk")
    )
    assert in_memory == on_disk


def on_disk(url: str, body: bytes) -> Visit:
    made = visit(url, body)
    return msgspec.structs.replace(made, response=msgspec.structs.replace(made.response, body=stored(body)))


def lay(keeper: WarcArchive, large: Visit) -> None:
    asyncio.run(keeper.lay(large))


def committed(directory: Path, ends: dict[str, int]) -> list[dict[str, Any]]:
    """What a resumed crawl finds: the records before the ends."""
    restore(directory, ends)
    return records(directory)


def test_nothing_that_is_laid_down_counts_before_its_group(tmp_path: Path) -> None:
    keeper = archive(tmp_path)
    lay(keeper, on_disk("http://a.test/large", b"x" * 100))
    keeper.append([visit("http://a.test/small")])
    responses = [record for record in committed(tmp_path, dict(keeper.ends())) if record["warc-type"] == "response"]
    assert [record["warc-target-uri"] for record in responses] == ["http://a.test/small"]


def test_a_group_takes_what_was_laid_down_for_it(tmp_path: Path) -> None:
    keeper, large = archive(tmp_path), on_disk("http://a.test/large", bytes(range(256)) * 4000)
    lay(keeper, large)
    between = keeper.append([visit("http://a.test/small")])
    ends = dict(keeper.ends())
    places = [*between, *keeper.append([large])]
    ends.update(keeper.ends())
    asyncio.run(keeper.stop())
    assert all(ends[place.file] == place.offset + place.length for place in places if place is not None)
    found = {record["warc-target-uri"]: record["block"] for record in committed(tmp_path, ends) if record["http"]}
    assert found["http://a.test/large"] == bytes(range(256)) * 4000
    assert not (tmp_path / "quarantine").exists(), "every byte is committed"


def test_what_is_laid_down_stays_for_a_group_that_is_tried_again(tmp_path: Path) -> None:
    keeper, large = archive(tmp_path), on_disk("http://a.test/large", b"x" * 100)
    lay(keeper, large)
    first = keeper.append([large])
    keeper.take_back()
    [other] = keeper.append([visit()])
    assert other is not None
    assert dict(keeper.ends()) == {other.file: other.offset + other.length}, "of what is kept now alone"
    lay(keeper, large)
    assert keeper.append([large]) == first
    asyncio.run(keeper.stop())
    found = [record["warc-target-uri"] for record in records(tmp_path) if record["warc-type"] == "response"]
    assert sorted(found) == ["http://a.test/", "http://a.test/large"], "each once"


def test_what_was_laid_down_for_nothing_is_nowhere(tmp_path: Path) -> None:
    keeper, large = archive(tmp_path), on_disk("http://a.test/large", b"x" * 100)
    lay(keeper, large)
    twin = msgspec.structs.replace(large, duplicate_of="http://a.test/twin")
    keeper.append([twin])
    lay(keeper, on_disk("http://a.test/never", b"y" * 100))
    asyncio.run(keeper.stop())
    kinds = [(record["warc-type"], record.get("warc-target-uri")) for record in records(tmp_path)]
    assert ("revisit", "http://a.test/large") in kinds, "its document was kept by another group meanwhile"
    assert not [kind for kind in kinds if kind[0] == "response"]


def test_laying_down_goes_on_on_another_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl, disk = tmp_path / "crawl", tmp_path / "disk"
    keeper = archive(crawl, disks=(str(disk),))
    break_disk(monkeypatch, crawl / "warc")
    large = on_disk("http://a.test/large", b"x" * 100)
    lay(keeper, large)
    [place] = keeper.append([large])
    assert place is not None
    assert (disk / Path(place.file).name).stat().st_size == place.offset + place.length
    asyncio.run(keeper.stop())


def test_a_group_whose_large_body_cannot_be_written_is_cut_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = archive(tmp_path)
    keeper.append([visit()])
    [path] = tmp_path.glob("warc/*")
    before = path.read_bytes()
    failing = msgspec.structs.replace(visit(), response=msgspec.structs.replace(visit().response, body=stored(b"x")))

    calls = itertools.count()

    def pread(descriptor: int, length: int, place: int) -> bytes:
        # The first piece comes; by the second the group has begun.
        if next(calls) < 1:
            return b"x"
        assert path.stat().st_size > len(before)
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", pread)
        with pytest.raises(OSError, match="broken"):
            keeper.append([visit(), failing])
    assert path.read_bytes() == before
    keeper.append([visit()])
    assert len(records(tmp_path)) == 5


def test_fastwarc_verifies_every_digest(tmp_path: Path) -> None:
    fastwarc = pytest.importorskip("fastwarc.warc")
    archive(tmp_path).append([visit(), visit("http://a.test/b", b"\x00" * 9)])
    [path] = tmp_path.glob("warc/*")
    found = list(fastwarc.ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=True, verify_digests=False))
    assert [r.headers["WARC-Type"] for r in found] == ["warcinfo", "request", "response", "request", "response"]
    for record in fastwarc.ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False):
        if record.headers["WARC-Type"] == "warcinfo":
            assert record.verify_block_digest()
    for record in fastwarc.ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=True):
        if record.headers["WARC-Type"] == "response":
            assert record.verify_payload_digest()


def test_a_duplicate_is_a_revisit_that_names_the_original_and_its_date(tmp_path: Path) -> None:
    kept = archive(tmp_path)
    kept.append([visit("http://a.test/1")])
    kept.append([visit("http://a.test/2", duplicate_of="http://a.test/1")])
    revisit = records(tmp_path)[-1]
    assert revisit["warc-type"] == "revisit"
    assert revisit["warc-profile"] == REVISIT_PROFILE
    assert revisit["warc-refers-to-target-uri"] == "http://a.test/1"
    assert revisit["warc-refers-to-date"] == "2023-11-14T22:13:20.250000Z"
    assert revisit["http"].get_header("content-type") == "text/html"
    assert revisit["block"] == b""


def test_dates_of_originals_are_forgotten_within_the_bound(tmp_path: Path) -> None:
    kept = archive(tmp_path, originals=1)
    kept.append([visit("http://a.test/1", b"one"), visit("http://a.test/2", b"two")])
    kept.append([visit("http://a.test/3", b"one", duplicate_of="http://a.test/1")])
    assert "warc-refers-to-date" not in records(tmp_path)[-1]
    assert kept.metrics.snapshot()["originals"] == 1


def test_what_is_kept_out_is_no_revisit_even_if_the_same_bytes_are_there(tmp_path: Path) -> None:
    kept = archive(tmp_path)
    silent = visit("http://a.test/2", duplicate_of="http://a.test/1")
    kept.append([visit("http://a.test/1"), msgspec.structs.replace(silent, directives=("noarchive",))])
    kept.append([msgspec.structs.replace(silent, barred={"store": "filter: x"})])
    answers = [one for one in records(tmp_path) if one["warc-type"] in ("response", "revisit")]
    assert [(one["warc-type"], one["block"]) for one in answers] == [
        ("response", b"<p>hello"),
        *[("response", b"")] * 2,
    ]


def tagged(value: str) -> Visit:
    response = visit().response
    headers = (*response.headers, ("x-robots-tag", value))
    return msgspec.structs.replace(visit(), response=msgspec.structs.replace(response, headers=headers))


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        (msgspec.structs.replace(visit(), directives=("nofollow", "noarchive")), False),
        (tagged("noindex, noarchive"), False),
        (tagged("gossamer: noarchive"), False),
        (tagged("otherbot: noarchive"), True),
        (tagged("noindex"), True),
    ],
)
def test_a_page_that_says_noarchive_keeps_its_body_out(tmp_path: Path, one: Visit, kept: bool) -> None:
    archive(tmp_path).append([one])
    found = records(tmp_path)
    response = found[-1]
    assert (response["warc-type"], response["http"].get_statuscode()) == ("response", "200")
    assert response["block"] == (b"<p>hello" if kept else b"")
    assert (response.get("warc-truncated") == "unspecified") is not kept
    assert any(b"noarchive" in r["block"] for r in found if r["warc-type"] == "metadata") is not kept
    assert not [path for path in tmp_path.glob("warc/*") if b"<p>hello" in gzip.decompress(path.read_bytes())] or kept


def test_not_modified_is_a_revisit_of_its_own_kind(tmp_path: Path) -> None:
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    archive(tmp_path).append([visit(head=head, body=b"", outcome=Outcome.NOT_MODIFIED)])
    revisit = records(tmp_path)[-1]
    assert (revisit["warc-type"], revisit["warc-profile"]) == ("revisit", NOT_MODIFIED_PROFILE)
    assert revisit["warc-refers-to-target-uri"] == "http://a.test/"
    assert "warc-payload-digest" not in revisit
    assert revisit["http"].get_statuscode() == "304"


@pytest.mark.parametrize(("mime", "kind"), [("text/plain", "text/plain"), ("a\r\nX: y", "application/octet-stream")])
@pytest.mark.parametrize("large", [False, True])
def test_a_document_without_a_header_block_is_a_resource(tmp_path: Path, mime: str, kind: str, large: bool) -> None:
    one = visit("ftp://a.test/readme", head=b"")
    body = stored(b"hello") if large else b"hello"
    headers = (("content-type", mime),)
    response = msgspec.structs.replace(one.response, request_head=b"", headers=headers, body=body)
    archive(tmp_path).append([msgspec.structs.replace(one, response=response, digest=sha1_base32(b"hello"))])
    _, record = records(tmp_path)
    assert (record["warc-type"], record["content-type"], record["block"]) == ("resource", kind, b"hello")
    assert record["warc-payload-digest"] == f"sha1:{sha1_base32(b'hello')}"


def test_what_is_known_beside_an_answer_is_a_metadata_record(tmp_path: Path) -> None:
    one = visit("http://a.test/b")
    task = msgspec.structs.replace(one.task, source="http://a.test/a", relation="a href")
    one = msgspec.structs.replace(one, task=task, trouble="ValueError: x\r\nvia: http://forged/")
    archive(tmp_path).append([one])
    _, _, beside, response = records(tmp_path)
    assert (beside["warc-type"], beside["content-type"]) == ("metadata", "application/warc-fields")
    assert beside["warc-concurrent-to"] == response["warc-record-id"]
    assert beside["block"].decode().splitlines() == [
        "via: http://a.test/a",
        "relation: a href",
        "trouble: ValueError: x via: http://forged/",
        "fetchTimeMs: 125",
    ]


@pytest.mark.parametrize("metadata", [True, False])
def test_an_answer_of_a_server_that_nobody_verified_says_so(tmp_path: Path, metadata: bool) -> None:
    one = visit("https://a.test/")
    one = msgspec.structs.replace(one, response=msgspec.structs.replace(one.response, is_unverified=True))
    archive(tmp_path, metadata=metadata, tls=UNVERIFIED).append([one, visit("https://b.test/")])
    info, _, beside, response, *others = records(tmp_path)
    assert b"tls: certificates not verified\r\n" in info["block"]
    assert (beside["warc-type"], beside["block"]) == ("metadata", b"tls: certificates not verified\r\n")
    assert beside["warc-concurrent-to"] == response["warc-record-id"]
    assert [record["warc-type"] for record in others] == ["request", "response"]


def test_without_anything_to_say_or_the_setting_there_is_no_metadata_record(tmp_path: Path) -> None:
    troubled = msgspec.structs.replace(visit(), trouble="x")
    archive(tmp_path).append([visit()])
    archive(tmp_path, metadata=False).append([troubled])
    assert "metadata" not in {record["warc-type"] for record in records(tmp_path)}


def test_ends_name_what_was_written_since_they_were_asked(tmp_path: Path) -> None:
    kept = archive(tmp_path, rotate_bytes=1)
    kept.append([unanswered()])
    assert kept.ends() == {}
    kept.append([visit()])
    kept.append([visit("http://a.test/2")])
    sizes = {f"warc/{path.name}": path.stat().st_size for path in tmp_path.glob("warc/*")}
    assert (len(sizes), kept.ends(), kept.ends()) == (2, sizes, {})


@pytest.mark.parametrize(("cut", "word"), [("length", "length"), ("time", "time"), ("a\r\nb: c", "unspecified")])
def test_a_cut_body_says_why(tmp_path: Path, cut: str, word: str) -> None:
    archive(tmp_path).append([visit(cut=cut)])
    assert records(tmp_path)[-1]["warc-truncated"] == word


def test_chunk_framing_is_recorded_under_another_name(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nTRANSFER-encoding: chunked\r\nX: transfer-encoding: y\r\n\r\n"
    archive(tmp_path).append([visit(head=head, body=b"5\r\nhello\r\n0\r\n\r\n")])
    response = records(tmp_path)[-1]
    assert response["block"] == b"5\r\nhello\r\n0\r\n\r\n"
    assert response["http"].get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"
    assert response["http"].get_header("X") == "transfer-encoding: y"
    assert response["http"].get_header("transfer-encoding") is None


def test_hostile_answers_forge_nothing(tmp_path: Path) -> None:
    kept = archive(tmp_path)
    visits = hostile_visits()
    kept.append(visits)
    found = records(tmp_path)
    assert [r["warc-type"] for r in found].count("warcinfo") == 1
    # Those whose texts are not empty once control characters are gone have something to tell beside the answer.
    kinds = Counter(r["warc-type"] for r in found)
    assert kinds["request"] == kinds["response"] + kinds["revisit"] == len(visits)
    assert set(kinds) == {"warcinfo", "request", "response", "revisit", "metadata"}
    names = {name for record in found for name in record}
    assert all(name.replace("-", "").isalnum() for name in names), names


def test_files_rotate_between_groups_and_each_has_its_warcinfo(tmp_path: Path) -> None:
    kept = archive(tmp_path, rotate_bytes=1)
    for n in range(3):
        kept.append([visit(f"http://a.test/{n}"), visit(f"http://a.test/{n}b")])
    names = sorted(path.name for path in tmp_path.glob("warc/*"))
    assert names == [f"gossamer-agent-00-20231114221320-{n:05d}.warc.gz" for n in range(3)]
    assert [r["warc-type"] for r in records(tmp_path)] == ["warcinfo", *["request", "response"] * 2] * 3


def test_a_second_run_never_writes_into_a_file_of_the_first(tmp_path: Path, run: Any) -> None:
    first = archive(tmp_path)
    first.append([visit()])
    run(first.stop())
    archive(tmp_path).append([visit()])
    assert len(list(tmp_path.glob("warc/*"))) == 2
    assert len(records(tmp_path)) == 6


def test_nothing_answered_leaves_no_file(tmp_path: Path, run: Any) -> None:
    kept = archive(tmp_path / "new")
    assert kept.append([unanswered()]) == [None]
    run(kept.stop())
    assert not (tmp_path / "new").exists()


def test_a_digest_that_is_none_is_counted_anew(tmp_path: Path) -> None:
    forged: Visit = msgspec.structs.replace(visit(), digest="A\r\nX: y")
    archive(tmp_path).append([forged])
    assert records(tmp_path)[-1]["warc-payload-digest"] == f"sha1:{sha1_base32(forged.response.body)}"


@pytest.mark.parametrize("size", [100, MOST_STORED, 200_000])
def test_a_body_that_came_in_a_coding_is_read_as_any_other_and_the_archive_grows_by_little(
    tmp_path: Path, size: int
) -> None:
    body = os.urandom(size)
    came = visit("http://a.test/", body)
    archive(tmp_path).append(
        [msgspec.structs.replace(came, response=msgspec.structs.replace(came.response, decoded=b""))]
    )
    (path,) = tmp_path.glob("warc/*")
    assert records(tmp_path)[-1]["block"] == body
    assert body in gzip.decompress(path.read_bytes())
    assert path.stat().st_size < size + 3_000
    assert (body in path.read_bytes()) is (size < MOST_STORED)


@pytest.mark.parametrize("head", HOSTILE_HEADS)
def test_a_header_block_ends_once(head: bytes) -> None:
    kept = http_head(head)
    assert kept.endswith(b"\r\n\r\n")
    assert kept.index(b"\r\n\r\n") == len(kept) - 4
    assert not any(byte < 32 and byte not in b"\t\r\n" for byte in kept)
    assert http_head(kept) == kept


def test_a_well_formed_header_block_stays_byte_for_byte() -> None:
    head = b"HTTP/1.1 200 \xe4\r\nSet-Cookie: a=b; \tc\r\nX:\r\n folded\r\n\r\n"
    assert http_head(head) == head


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_fields_hold_no_control_characters(text: str) -> None:
    assert uri_field(f"http://a.test/{text}").isprintable()
    assert uri_field(f"http://a.test/{text}").isascii()
    assert len(text_field(text).splitlines()) <= 1


def test_a_canonical_url_is_written_as_it_is() -> None:
    assert uri_field("http://a.test/%20?q=%22&r=[]|'") == "http://a.test/%20?q=%22&r=[]|'"


def test_record_ids_are_random_uuids() -> None:
    import uuid

    made = {record_id() for _ in range(100)}
    assert len(made) == 100
    assert {uuid.UUID(one[10:-1]).version for one in made} == {4}
    assert {uuid.UUID(one[10:-1]).variant for one in made} == {uuid.RFC_4122}


def test_files_go_to_several_disks_in_turn_and_are_found_in_one_place(tmp_path: Path) -> None:
    crawl, disk = tmp_path / "crawl", tmp_path / "disk"
    kept = archive(crawl, disks=(str(disk),), rotate_bytes=1)
    for number in range(4):
        kept.append([visit(f"http://a.test/{number}")])
    assert len(list(disk.glob("*.warc.gz"))) == 2
    assert len(list(crawl.glob("warc/*.warc.gz"))) == 4
    assert {r["warc-target-uri"] for r in records(crawl) if r["warc-type"] == "response"} == {
        f"http://a.test/{number}" for number in range(4)
    }


def test_a_disk_that_fails_is_left_and_the_next_one_takes_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl, disk = tmp_path / "crawl", tmp_path / "disk"
    kept = archive(crawl, disks=(str(disk),), rotate_bytes=1)
    break_disk(monkeypatch, disk, errno.ENOSPC)
    said: list[str] = []
    kept.report = said.append
    for number in range(3):
        [location] = kept.append([visit(f"http://a.test/{number}")])
        assert location is not None
        assert (crawl / location.file).stat().st_size >= location.offset + location.length
    assert kept.metrics.counters["disks_left"] == 1
    assert said == [f"no archive file goes to {disk} any more: No space left on device; the others take them"]
    assert len([r for r in records(crawl) if r["warc-type"] == "response"]) == 3


def test_the_last_disk_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = archive(tmp_path / "crawl", disks=(str(tmp_path / "disk"),))
    for folder in (tmp_path / "crawl" / "warc", tmp_path / "disk"):
        break_disk(monkeypatch, folder, from_byte=0)
    with pytest.raises(OSError, match="Input/output"):
        kept.append([visit()])


def test_an_archive_names_the_software_that_the_settings_do(tmp_path: Path) -> None:
    made = archive(tmp_path, software="Own/7")
    made.append([visit()])
    asyncio.run(made.stop())
    [path] = tmp_path.rglob("*.warc.gz")
    assert b"software: Own/7\r\n" in gzip.decompress(path.read_bytes())
