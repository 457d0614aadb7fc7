"""Requests that are no plain GET in a crawl that is killed while one is sent: the unsafe one is not sent again, the others are."""

import json
import subprocess
import sys
from pathlib import Path

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakeWeb

#: A crawl whose seeds are requests, and a protocol module that writes down what it sends and dies of the last one.
PROGRAM = """
import os, signal, sys
import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.engine.component import Producer
from gossamer.engine.ends import Out
from gossamer.engine.sheet import build
from gossamer.engine.wiring import with_settings
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response
from gossamer.fetcher.http import HttpModule
from gossamer.frontier.frontier import SeedsSheet

url, directory, log, run_name = sys.argv[1:]


class Forms(Producer[SeedsSheet]):
    outbox: Out[Task]

    def produce(self):
        safe, failing = requested("POST", b"safe", is_safe=True), requested("POST", b"failing")
        for request in (None, safe, failing, requested("POST", b"unsafe")):
            yield Task(self.sheet.urls[0], host_of(self.sheet.urls[0]), request=request)


class Sends(HttpModule):
    async def send(self, task):
        with open(log, "a") as sent:
            sent.write(run_name + " " + task.request.body.decode() + "\\n")
        if task.request.body == b"unsafe" and run_name == "first":
            os.kill(os.getpid(), signal.SIGKILL)
        if task.request.body == b"failing":
            return Response(Outcome.SERVER_ERROR, 500, response_head=b"HTTP/1.1 500 No\\r\\n\\r\\n", is_met=True)
        return Response(Outcome.OK, 200, response_head=b"HTTP/1.1 200 OK\\r\\n\\r\\n", body=b"done", is_met=True)


known = catalog()
known.add("seeds", Forms)
known.add("http", Sends)
options = {"output": directory, "delay": 0, "robots": "ignore", "i_own_these_hosts": True, "concurrency": 1}
if run_name == "first":
    crawl = Crawl([url], build(all_options(), options), catalog=known)
else:
    crawl = Crawl([], build(all_options(), {"output": directory, "resume": True}), catalog=known)
print(run(crawl).state)
"""


def test_a_request_that_may_not_be_sent_twice_is_not_tried_again_and_ends_as_interrupted_after_a_kill(
    tmp_path: Path,
) -> None:
    directory, program, log = tmp_path / "crawl", tmp_path / "program.py", tmp_path / "sent"
    program.write_text(PROGRAM)
    with FakeWeb({"/": "page"}) as web:
        url = web.url("/")
        for name, code in (("first", -9), ("second", 0), ("third", 0)):
            done = subprocess.run(
                [sys.executable, str(program), url, str(directory), str(log), name], capture_output=True, text=True
            )
            assert done.returncode == code, done.stderr
    sent = log.read_text().splitlines()
    assert [line for line in sent if line.endswith(" unsafe")] == ["first unsafe"], "an unsafe request was sent twice"
    assert sent.count("first failing") == len([line for line in sent if line.endswith(" failing")]) == 1, (
        "it was tried again"
    )
    assert "first safe" in sent
    rows = [json.loads(line) for line in (directory / "logs" / "crawl.jsonl").read_text().splitlines()]
    assert sorted(row["outcome"] for row in rows) == ["interrupted", "ok", "ok", "server_error"]
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    with ledger.looking():
        documents = {row.mark.partition(" ")[0]: row for row in ledger.documents() if row.outcome != "interrupted"}
        assert set(documents) == {"", "POST"}
        assert len(ledger.queues) == 0
        assert ledger.counters()["outcome:interrupted"] == 1
