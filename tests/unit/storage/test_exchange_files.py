"""Exchange files: what is owed leaves in them and is never lost, and a file that is not whole, ours and for us is refused."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.mailboxes import ByLetter

from gossamer.storage.ledger.deleting import delete
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.mailbox.exchange_files import OUT, FileOutbox, FileOutboxSheet, merged_files, written_files
from gossamer.storage.mailbox.sealed_files import (
    EXCHANGE_KEY,
    ExchangeKey,
    UrlFile,
    UrlFileHeader,
    UrlFileWriter,
    new_header,
    new_key,
    proved,
    read_key,
    write_key,
)
from gossamer.storage.mailbox.staging import DividedLedger
from gossamer.testing.clock import FakeClock
from gossamer.values.agents import Claim, agent_name, as_task, claimed_by, fault_of
from gossamer.values.errors import UsageError
from gossamer.values.hosts import DeletionTarget
from gossamer.values.request_identity import Action, redirected, requested
from gossamer.values.task import Task
from gossamer.values.visit import ORDER

KEY = new_key(["agent-00", "agent-01", "agent-02"])


def task(host: str, number: int, depth: int = 1) -> Task:
    return Task(f"http://{host}.test/{number}", f"{host}.test", depth, "http://a.test/", "a href")


def sealed(path: Path, tasks: list[Task], key: ExchangeKey = KEY, receiver: str = "agent-01") -> UrlFileHeader:
    """A file of agent-00."""
    writer, header = UrlFileWriter(), new_header(key, "agent-00", receiver, 5.0, ["00ff"])
    writer.add(tasks)
    writer.write(path, key, header)
    return header


def with_header(**changed: object) -> Callable[[bytes], bytes]:
    """A file whose header says something else."""

    def change(data: bytes) -> bytes:
        head, _, rest = data.partition(b"\n")
        return msgspec.json.encode({**msgspec.json.decode(head), **changed}) + b"\n" + rest

    return change


def flipped(data: bytes) -> bytes:
    """One bit of the last byte but ten is another one."""
    return data[:-10] + bytes([data[-10] ^ 1]) + data[-9:]


def test_a_file_brings_what_was_put_into_it(tmp_path: Path) -> None:
    tasks = [task("b", number) for number in range(3_000)]
    sealed(tmp_path / "one.urls", tasks)
    file = proved(tmp_path / "one.urls", KEY, "agent-01")
    assert list(file.tasks()) == tasks
    assert (file.header.urls, file.header.sender, file.header.merged) == (3_000, "agent-00", ("00ff",))
    assert [path.name for path in tmp_path.iterdir()] == ["one.urls"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data[:-1], "is cut: "),
        (lambda data: data[:40], "is cut within its header"),
        (lambda data: b"", "is empty"),
        (lambda data: data + b"more", "4 bytes behind its end"),
        (flipped, "is damaged"),
        (lambda data: b"<html>", "is not an exchange file"),
        (lambda data: b"\xff\xfe" * 100, "is not an exchange file"),
        (with_header(version=2), "version 2 of its form"),
        (with_header(exchange="other"), "belongs to another crawl"),
        (with_header(receiver="agent-02"), "is for agent-02, and this is agent-01"),
        (with_header(sender="agent-07"), "divides the web in another way"),
        (with_header(sender="agent-01"), "agent-01 sent it to itself"),
        (with_header(rule="other"), "divides the web in another way"),
        (with_header(urls=7), "is forged"),
        (with_header(merged=["11"]), "is forged"),
        (with_header(seal=""), "is forged"),
        (with_header(seal="Ü"), "is forged"),
        (with_header(urls="many"), "a header that cannot be read"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused_with_the_reason(
    tmp_path: Path, change: Callable[[bytes], bytes], why: str
) -> None:
    path = tmp_path / "one.urls"
    sealed(path, [task("b", number) for number in range(100)])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UsageError, match=why) as refused:
        proved(path, KEY, "agent-01")
    assert len(str(refused.value).splitlines()) == 1


def test_a_file_that_was_sealed_with_another_secret_is_forged(tmp_path: Path) -> None:
    theirs = msgspec.structs.replace(KEY, secret="00" * 32)
    sealed(tmp_path / "one.urls", [task("b", 1)], theirs)
    with pytest.raises(UsageError, match="is forged"):
        proved(tmp_path / "one.urls", KEY, "agent-01")


def test_a_key_is_kept_for_its_owner_alone_and_anything_else_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key(path, KEY)
    assert read_key(path) == KEY
    assert path.stat().st_mode & 0o777 == 0o600
    assert KEY.secret not in repr(KEY)
    for text in ("", "{}", '{"format":"gossamer-exchange-key"}', path.read_text().replace(KEY.secret, "00")):
        path.write_text(text)
        with pytest.raises(UsageError, match="is not an exchange key"):
            read_key(path)
    path.write_text(msgspec.json.encode(msgspec.structs.replace(KEY, version=9)).decode())
    with pytest.raises(UsageError, match="is of version 9"):
        read_key(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_key(tmp_path / "gone")


class Agent:
    """agent-00, or another one, on a ledger of its own, without the rest of a crawl."""

    def __init__(self, folder: Path, number: int = 0, most: int = 50_000) -> None:
        self.folder = folder
        self.name = agent_name(number)
        (folder / "state").mkdir(parents=True, exist_ok=True)
        write_key(folder / EXCHANGE_KEY, KEY)
        self.ledger, self.divided = RocksLedger(LedgerSheet(directory=str(folder))), DividedLedger()
        self.ledger.open()
        self.clock = FakeClock()
        self.outbox = FileOutbox(FileOutboxSheet(agent=self.name, directory=str(folder), most=most, every=60.0))
        self.outbox.ledger, self.outbox.designation, self.outbox.clock = self.ledger, ByLetter(), self.clock
        self.divided.behind, self.divided.outbox = self.ledger, self.outbox

    async def start(self) -> "Agent":
        await self.outbox.start()
        return self

    def push(self, *tasks: Task) -> None:
        with self.divided.group() as group:
            group.push(tasks)

    @property
    def counts(self) -> tuple[int, int]:
        """What is owed, and what is written and not confirmed."""
        counters = self.ledger.counters()
        return counters.get("owed", 0), counters.get("written", 0)

    def files(self) -> list[UrlFile]:
        """What it has written for agent-01."""
        return [proved(path, KEY, "agent-01") for path in sorted((self.folder / OUT).glob("*-to-agent-01-*"))]


def urls(files: list[UrlFile]) -> list[str]:
    return sorted(task.url for file in files for task in file.tasks())


def test_what_is_owed_is_written_once_and_kept_until_the_other_agent_says_that_it_has_it(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        agent.push(task("a", 0), *(task("b", number) for number in range(5)), task("c", 1))
        made = await agent.outbox.write()
        assert sorted((file.agent, file.urls) for file in made) == [("agent-01", 5), ("agent-02", 1)]
        assert urls(agent.files()) == [f"http://b.test/{number}" for number in range(5)]
        assert agent.counts == (0, 6)
        assert await agent.outbox.write() == [], "what is written is not written again by itself"
        [first] = agent.files()
        assert await agent.outbox.confirmed([first.header.id, "00", first.header.id]) == 5
        assert agent.counts == (0, 1)
        assert agent.files() == [], "a file that was merged is removed"
        agent.push(task("b", 1))
        assert agent.counts == (1, 1), "it is the ledger's seen set that keeps a URL from being owed twice"
        agent.ledger.abandon()

    asyncio.run(check())


def test_what_was_in_files_that_were_lost_is_written_again(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        agent.push(*(task("b", number) for number in range(3)))
        await agent.outbox.write()
        [lost] = agent.files()
        old = lost.header.id
        lost.path.unlink()
        assert await agent.outbox.owe_again() == 3
        assert agent.counts == (3, 0)
        await agent.outbox.write()
        assert urls(agent.files()) == [f"http://b.test/{number}" for number in range(3)]
        assert await agent.outbox.confirmed([old]) == 0, (
            "it was found again after all, which says nothing of the new file"
        )
        assert agent.counts == (0, 3)
        agent.ledger.abandon()

    asyncio.run(check())


def test_what_a_kill_leaves_between_file_and_ledger_is_written_once_more(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        agent.push(task("b", 1))
        sealed(tmp_path / "orphan.urls", [task("b", 1)])  # as if the file of a killed run lay there
        agent.ledger.abandon()
        agent = await Agent(tmp_path).start()
        assert agent.counts == (1, 0)
        await agent.outbox.write()
        assert urls(agent.files()) == ["http://b.test/1"]
        agent.ledger.abandon()

    asyncio.run(check())


def test_a_lower_depth_is_owed_again_and_goes_with_the_next_file(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        agent.push(task("b", 1, depth=4))
        [first] = await agent.outbox.write()
        agent.push(task("b", 1, depth=2))
        assert agent.counts == (1, 1)
        await agent.outbox.write()
        assert agent.counts == (0, 1)
        assert await agent.outbox.confirmed([first.id]) == 0, "the first file did not have the lower depth"
        assert agent.counts == (0, 1)
        agent.ledger.abandon()

    asyncio.run(check())


def test_a_host_that_is_deleted_is_owed_to_nobody(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        agent.push(task("b", 1), task("b2", 1))
        await agent.outbox.write()
        agent.push(task("b", 2), task("b2", 2))
        assert agent.counts == (2, 2)
        delete(agent.ledger, DeletionTarget("host", "b.test"), ["b.test"], forget=False)
        agent.ledger.close()
        agent = await Agent(tmp_path).start()
        assert agent.counts == (1, 1)
        await agent.outbox.owe_again()
        await agent.outbox.write()
        assert urls(agent.files()) == ["http://b2.test/1", "http://b2.test/2"]
        agent.ledger.abandon()

    asyncio.run(check())


def test_files_are_no_longer_than_the_setting_says_however_many_agents_there_are(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path, most=1_000).start()
        agent.push(*(task("b", number) for number in range(2_500)), *(task("c", number) for number in range(700)))
        made = await agent.outbox.write()
        assert sum(file.urls for file in made) == 3_200
        assert max(file.urls for file in made) <= 2_000, "at most one stretch more"
        assert len(urls(agent.files())) == 2_500
        agent.ledger.abandon()

    asyncio.run(check())


def test_a_receipt_is_given_with_the_next_file_or_alone(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        theirs = new_header(KEY, "agent-01", "agent-00", 1.0, [])
        agent.outbox.merged(msgspec.structs.replace(theirs, urls=2), 1)
        assert agent.outbox.has_merged(theirs.id)
        assert not agent.outbox.has_merged("no id")
        [alone] = await agent.outbox.write()
        assert (alone.agent, alone.urls) == ("agent-01", 0)
        assert agent.files()[0].header.merged == (theirs.id,)
        assert await agent.outbox.write() == [], "it is told once, until it is asked for again"
        agent.push(task("b", 1))
        [more] = await agent.outbox.write()
        assert [file.header.id for file in agent.files()] == [more.id], (
            "a file that says the same and more takes its place"
        )
        assert agent.files()[0].header.merged == (theirs.id,)
        assert [file.id for file in merged_files(agent.ledger.spaces)] == [theirs.id]
        assert [file.id for file in written_files(agent.ledger.spaces)] == [more.id]
        agent.ledger.abandon()

    asyncio.run(check())


def test_a_crawl_at_work_writes_what_it_owes_from_time_to_time(tmp_path: Path) -> None:
    async def check() -> None:
        agent = await Agent(tmp_path).start()
        agent.push(task("b", 1))
        writing = asyncio.create_task(agent.outbox.write_in_time())
        await asyncio.sleep(0)
        await agent.clock.advance(59.0)
        await asyncio.sleep(0)
        assert agent.counts == (1, 0)
        await agent.clock.advance(2.0)
        while agent.counts != (0, 1):
            await asyncio.sleep(0.001)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        agent.ledger.abandon()

    asyncio.run(check())


def told(tmp_path: Path, *lines: bytes) -> UrlFile:
    """A file of agent-00 with these lines, whatever they hold, rightly sealed."""
    writer, header = UrlFileWriter(), new_header(KEY, "agent-00", "agent-01", 5.0, ())
    writer.urls = len(lines)
    writer._parts.append(writer._packer.compress(b"".join(line + b"\n" for line in lines)))
    writer.write(tmp_path / "told.urls", KEY, header)
    return proved(tmp_path / "told.urls", KEY, "agent-01")


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "notaurl"},
        {"url": ""},
        {"url": "http://B.test/"},
        {"url": "http://b.test/\n"},
        {"url": "http://b.test/#x"},
        {"url": "http://u@b.test/"},
        {"url": "http://b.test/" + "x" * 4_000},
        {"host": ""},
        {"host": "a.test"},
        {"host": "x" * 100_000},
        {"depth": 2**63},
        {"depth": 10**5_000},
        {"depth": -1},
        {"depth": "1"},
        {"attempt": 0},
        {"level": 256},
        {"hops": -1},
        {"source": "http://a.test/\r\n"},
        {"source": "x" * 100_000},
        {"relation": "x" * 1_000},
        {"etag": '"a"\r\nX-Other: 1'},
        {"last_modified": "\0"},
        {"request": {"method": "GET /"}},
        {"request": {"mark": "POST - ", "method": "POST", "headers": [["Cookie", "a\r\nHost: b"]]}},
        {"request": {"mark": "", "method": "POST", "body": "YQ=="}},
        {"request": {"mark": "GET - \n", "method": "GET"}},
        {"request": {"priority": 2**40}},
        {"request": {"data": "AAAA"}},
        {"request": {"data": "xwUBAAAAAAA="}},
        {"request": {"actions": [{"do": "click"}]}},
        {"request": {"actions": [{"do": "wait", "seconds": 1e300}]}},
        {"source": "notaurl"},
        {"source": "http://a.test/#x"},
        {"relation": "robots"},
        {"relation": "announced"},
        {"relation": "render script"},
    ],
)
def test_a_url_that_no_crawl_can_keep_is_named_and_left_out_and_the_rest_is_read(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    whole = msgspec.to_builtins(task("b", 1))
    bad = json.dumps({**whole, **changed}) if changed.get("depth") != 10**5_000 else '{"depth":1' + "0" * 5_000 + "}"
    file = told(tmp_path, msgspec.json.encode(whole), bad.encode(), msgspec.json.encode(task("b", 2)))
    assert [one.url for one in file.tasks()] == ["http://b.test/1", "http://b.test/2"]
    assert file.refused == 1
    assert file.examples[0].startswith("URL 2")
    assert len(file.examples[0]) < 500
    assert file.examples[0].isprintable()


def test_a_line_that_is_no_task_is_left_out_however_deep_it_is(tmp_path: Path) -> None:
    file = told(tmp_path, b"", b"null", b'{"x":' + b"[" * 500_000, b"\xff", msgspec.json.encode(task("b", 2)))
    assert [one.url for one in file.tasks()] == ["http://b.test/2"]
    assert (file.refused, len(file.examples)) == (4, 3)


def test_requests_orders_and_claims_that_this_program_makes_can_be_kept(tmp_path: Path) -> None:
    data = msgspec.msgpack.encode({"a": [1, None, "b"]})
    post = requested("POST", b"a=1", (("X-A", "b"),), key="k", priority=-3, data=data, actions=(Action.click("a"),))
    led = redirected(post, 307, is_same_site=True)
    made = [
        task("b", 1),
        Task("http://b.test/", "b.test", request=post),
        Task("http://b.test/", "b.test", request=led),
        Task("http://b.test/", "b.test", request=redirected(post, 302, is_same_site=False)),
        Task("http://b.test/", "b.test", etag='"caf\xe9"', last_modified="Mon, 01 Jan 2024 00:00:00 GMT"),
        Task("http://[::1]:8080/", "::1"),
        Task("http://b.test/", "b.test", source="http://[::1]:8080/sitemap.xml", relation="redirect sitemap"),
        Task("http://b.test/", "b.test", source="https://xn--bcher-kva.test/?a=%7C|", relation="revisit sitemap"),
        Task('order:{"type":"block","host":"b.test"}', "b.test", relation=ORDER),
        as_task(Claim("A" * 32, "http://b.test/", 5.0)),
    ]
    assert [fault_of(one) for one in made] == [""] * len(made)
    sealed(tmp_path / "one.urls", made)
    assert list(proved(tmp_path / "one.urls", KEY, "agent-01").tasks()) == made


@pytest.mark.parametrize(
    "claim",
    [
        Claim("../" + "A" * 29, "http://b.test/", 5.0),
        Claim("A" * 3_000, "http://b.test/", 5.0),
        Claim("A" * 32, "notaurl", 5.0),
        Claim("A" * 32, "http://b.test/", 1e300),
        Claim("A" * 32, "http://b.test/", 5.0, 2**63),
    ],
)
def test_a_claim_that_no_ledger_can_keep_is_no_claim(claim: Claim) -> None:
    assert claimed_by(as_task(claim)) is None


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.urls")
    (tmp_path / "folder.urls").mkdir()
    for name in ("pipe.urls", "folder.urls"):
        with pytest.raises(UsageError, match="is not a regular file"):
            proved(tmp_path / name, KEY, "agent-01")
    with pytest.raises(UsageError, match="is not a regular file"):
        proved(Path("/dev/zero"), KEY, "agent-01")


@pytest.mark.parametrize("name", ["../../x", "00FF00FF00FF00FF", "0011223344556677\n", "00", "zz" * 8])
def test_an_id_that_is_no_number_of_ours_names_no_file(tmp_path: Path, name: str) -> None:
    writer, header = UrlFileWriter(), new_header(KEY, "agent-00", "agent-01", 5.0, ())
    writer.write(tmp_path / "one.urls", KEY, msgspec.structs.replace(header, id=name))
    with pytest.raises(UsageError, match="a header that cannot be read"):
        proved(tmp_path / "one.urls", KEY, "agent-01")


def test_more_urls_than_the_header_says_are_read_no_further(tmp_path: Path) -> None:
    writer, header = UrlFileWriter(), new_header(KEY, "agent-00", "agent-01", 5.0, ())
    writer.add([task("b", 1)] * 100)
    writer.urls = 3
    writer.write(tmp_path / "one.urls", KEY, header)
    tasks = proved(tmp_path / "one.urls", KEY, "agent-01").tasks()
    assert [next(tasks).url for _ in range(3)] == ["http://b.test/1"] * 3
    with pytest.raises(UsageError, match="more URLs than its header says"):
        next(tasks)
