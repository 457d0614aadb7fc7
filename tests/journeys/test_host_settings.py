"""`[hosts."*.example.org"]` of a configuration: each setting has an effect on the hosts that it names, and on no other."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.cli.main import main
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.sheet import build
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.errors import UsageError
from gossamer.values.task import Task

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

HOSTS = ("slow.a.test", "fast.b.test")


def politeness(clock: FakeClock, **settings: Any) -> HostPoliteness:
    unit = HostPoliteness(build(PolitenessSheet, {"delay": 1, "domain_delay": 0, "ip_delay": 0, **settings}))
    unit.clock = clock
    return unit


def test_a_host_waits_for_its_own_delay() -> None:
    polite = politeness(FakeClock(), delay=10, delays={"*.a.test": 5, "auto.b.test": "auto"})
    hosts = ("slow.a.test", "a.test", "c.test", "auto.b.test")
    assert [polite.delay(host) for host in hosts] == [5, 10, 10, polite.sheet.floor]


def test_a_hosts_own_delay_can_change_while_it_is_asked() -> None:
    polite = politeness(FakeClock())
    polite.begin(Task("http://slow.a.test/", "slow.a.test"), "192.0.2.1", polite.clock.monotonic())
    assert polite.delay("slow.a.test") == 1
    before = polite.sheet
    polite.sheet = build(PolitenessSheet, {"delays": '{"slow.a.test": 7}'}, base=before)
    polite.changed(before)
    assert polite.delay("slow.a.test") == 7


def test_a_host_has_its_own_number_of_live_requests_beyond_its_domains() -> None:
    clock = FakeClock()
    polite = politeness(clock, delay=0, lives={"slow.a.test": 6})

    def begun(host: str) -> int:
        polite.put(host, "192.0.2.1" if host.startswith("slow") else "192.0.2.2")
        for number in range(10):
            url = f"http://{host}/{number}"
            if not polite.begin(
                Task(url, host), "192.0.2.1" if host.startswith("slow") else "192.0.2.2", clock.monotonic()
            ):
                return number + 1
        return 10

    assert begun("slow.a.test") == 6
    assert begun("fast.b.test") == 1


def config(folder: Path, text: str) -> str:
    path = folder / "crawl.conf.toml"
    path.write_text(text)
    return str(path)


def test_a_host_has_its_own_budget_and_header(tmp_path: Path) -> None:
    pages = {f"http://{host}/": "".join(f'<a href="/{at}">{at}</a>' for at in range(9)) for host in HOSTS}
    pages |= {f"http://{host}/{at}": "x" for host in HOSTS for at in range(9)}
    text = '[hosts."*.a.test"]\nmax-pages = 4\nheader = ["X-Mine: yes"]\ndelay = 0\n'
    with FakeWeb(pages) as web:
        seeds = [f"http://{host}:{web.port}/" for host in HOSTS]
        options = ["--delay", "0", "--quiet", "--resolve", web.resolve, "--config", config(tmp_path, text)]
        assert main(["crawl", *seeds, "-o", str(tmp_path / "crawl"), *options]) == 0
        asked = [one for one in web.requests if one.target != "/robots.txt"]
    assert Counter(one.host.partition(":")[0] for one in asked) == {"slow.a.test": 4, "fast.b.test": 10}
    for one in asked:
        assert (one.header("x-mine") == "yes") == one.host.startswith("slow")


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ({"a*": {"delay": 1}}, "is not a host"),
        ({"a.test": {"dealy": 1}}, "did you mean 'delay'"),
        ({"a.test": {"delay": "soon"}}, "delay"),
        ({"a.test": {"per-host": 0}}, "at least 1"),
    ],
)
def test_what_cannot_be_set_for_a_host_is_said_in_one_line(hosts: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        compile_wiring(["http://a.test/"], CrawlOptions(hosts=hosts))
    assert '[hosts."a' in str(caught.value)


def test_fields_that_prove_who_asks_are_refused_for_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = config(tmp_path, '[hosts."a.test"]\nheader = ["Authorization: Bearer x"]\n')
    assert main(["crawl", "http://a.test/", "--config", text, "-o", str(tmp_path / "c")]) == 2
    told = capsys.readouterr().err
    assert "credentials" in told
    assert "Bearer" not in told
    crawl = Crawl(
        ["http://a.test/"], CrawlOptions(hosts={"a.test": {"delay": "5s"}}, output=str(tmp_path / "d")), tables=False
    )
    assert msgspec.to_builtins(crawl.graph.sheet("politeness"))["delays"] == {"a.test": 5}


def test_settings_of_a_host_change_in_a_running_crawl(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with FakeWeb.tree(6, 3, latency=0.2) as web:
        child = subprocess.Popen(
            [sys.executable, "-m", "gossamer", "crawl", web.url("/"), "-o", str(directory), "--delay", "0", "--quiet"],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": str(tmp_path)},
        )
        try:
            web.wait_for(3)
            changes = [
                'politeness.lives={"127.0.0.1": 2}',
                'commit.max_by_host={"127.0.0.1": 20}',
                'http.headers={"127.0.0.1": ["X-Mine: yes"]}',
            ]
            for change in changes:
                assert main(["set", str(directory), change]) == 0
            before = len(web.requests)
            web.wait_for(before + 8)
            assert main(["set", str(directory), 'politeness.delays={"*": 1}']) == 2
        finally:
            child.terminate()
            child.wait()
        later = web.requests[before + 4 :]
    assert all(one.header("x-mine") == "yes" for one in later)
