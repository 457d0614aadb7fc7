"""Seeds before a crawl begins: what may be asked, and whom it is asked of."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from gossamer.cli.options import read_config, read_seed_files
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.plan import check_addresses, read_seeds
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import build
from gossamer.fetcher.authentication import fill
from gossamer.fetcher.cares import DnsResolver
from gossamer.fetcher.cookies import CookieJar
from gossamer.values.errors import ResolutionFailed, UsageError


class Nowhere(DnsResolver):
    """Asks no name server, and notes what it was asked for; nothing of that exists."""

    asked: ClassVar[list[str]] = []

    async def find(self, host: str) -> Any:
        self.asked.append(host)
        raise ResolutionFailed(f"{host}: no such name")


@pytest.fixture
def asked() -> list[str]:
    """The names that name servers were asked for."""
    Nowhere.asked.clear()
    return Nowhere.asked


def told(folder: Path, seeds: list[str], **options: Any) -> list[str]:
    known = catalog()
    known.add("dns", Nowhere)
    crawl = Crawl(seeds, build(all_options(), {"output": str(folder / "c"), **options}), catalog=known)
    lines: list[str] = []
    asyncio.run(check_addresses(crawl.seeds, crawl.graph, crawl.options, lines.append))
    return lines


def test_a_seed_without_an_address_is_told(tmp_path: Path, asked: list[str]) -> None:
    assert told(tmp_path, ["http://a.test/"]) == ["seed http://a.test/: a.test: no such name"]


def test_a_scheme_that_two_modules_would_serve_is_refused(tmp_path: Path) -> None:
    wiring = shipped("default")
    fetch = wiring.components["fetch"]
    protocols: Any = {**dict(fetch.providers["protocols"]), "http": ["http", "file"]}
    two = msgspec.structs.replace(fetch, providers={**fetch.providers, "protocols": protocols})
    wiring = msgspec.structs.replace(wiring, components={**wiring.components, "fetch": two})
    with pytest.raises(WiringError, match=r"component 'fetch': scheme 'http' has 2 modules \(http, file\); name one"):
        Crawl(["http://127.0.0.1/"], CrawlOptions(output=str(tmp_path / "c")), wiring=wiring)
    assert not (tmp_path / "c").exists()


def test_names_behind_a_proxy_are_not_asked_for_here(tmp_path: Path, asked: list[str]) -> None:
    seeds = ["http://a.test/", "https://b.test/"]
    assert told(tmp_path, seeds, proxy="http://127.0.0.1:9", contact="me@example.org") == []
    assert asked == []


def test_a_proxy_opens_no_address_that_is_closed(tmp_path: Path, asked: list[str]) -> None:
    with pytest.raises(UsageError, match=r"169\.254\.169\.254"):
        told(tmp_path, ["http://169.254.169.254/"], proxy="http://127.0.0.1:9", contact="me@example.org")


def test_an_ipv6_address_of_this_machine_may_be_a_seed() -> None:
    for seed in ("http://[::1]:8080/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]:8080/"):
        job = Crawl([seed], CrawlOptions(output="nowhere"))
        asyncio.run(check_addresses(job.seeds, job.graph, CrawlOptions(), print))


def test_files_of_a_person_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_bytes(b"\xef\xbb\xbfhttp://a.test/\r\nhttp://b.test/\r\n")
    assert read_seed_files([str(tmp_path / "seeds")]) == ["http://a.test/", "http://b.test/"]
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbfdepth = 3\n")
    assert read_config(str(tmp_path / "c.toml")) == {"depth": 3}
    (tmp_path / "bad").write_bytes(b"http://a.test/\nhttp://b.test/\xe4\n")
    with pytest.raises(UsageError, match="bad: line 2: byte 0xE4"):
        read_seed_files([str(tmp_path / "bad")])
    cookies = tmp_path / "cookies"
    cookies.write_bytes(b"\xef\xbb\xbfa.test\tFALSE\t/\tFALSE\t0\tn\tJ\xc3\xb6rg\n")
    cookies.chmod(0o600)
    jar = CookieJar()
    assert fill(jar, cookies, 0.0) == 1
    assert jar.field("http://a.test/", 0.0) == "n=J\u00c3\u00b6rg", "an octet of UTF-8 a character"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_a_persons_file_end_as_its_editor_ends_them(end: str, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_bytes(end.join(["http://a.test/1", "# no", "", "http://u:p@a.test/2", ""]).encode())
    assert read_seed_files([str(tmp_path / "seeds.txt")]) == ["http://a.test/1", "http://u:p@a.test/2"]
    (tmp_path / "seeds.txt").write_bytes(f"http://a.test/1{end}http://a.test:99999/".encode())
    with pytest.raises(
        UsageError, match=r"line 2: seed 'http://a.test:99999/' is not a URL: its port 99999 is too large"
    ):
        read_seed_files([str(tmp_path / "seeds.txt")])
    (tmp_path / "seeds.txt").write_bytes(f"http://a.test/{end}http://a.test/\xe9".encode("latin-1"))
    with pytest.raises(UsageError, match="line 2: byte 0xE9 is not UTF-8"):
        read_seed_files([str(tmp_path / "seeds.txt")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://a.test:99999/", ": its port 99999 is too large; ports end at 65535"),
        ("http://u:p@a.test:8o/", ": its port '8o' is no number"),
        ("http://a.test:80:80/", ": its port '80:80' is no number"),
        ("http://[::1/", ": '[::1' is no address of IPv6; write one as http://[::1]/"),
        ("http://1.2.3.256/", ": '1.2.3.256' is no name of a host, and no address"),
        ("http://a b.test/", ": 'a b.test' is no name of a host, and no address"),
        ("http://", ": it names no host; write it in full, as https://example.org/"),
        ("no url", "; write it in full, as https://example.org/"),
        (":8101", "; did you mean http://localhost:8101?"),
        ("//a.test/", "; did you mean http://a.test/?"),
        ("http//a.test", "; did you mean http://a.test?"),
        ("word", "; did you mean http://word?"),
    ],
)
def test_a_seed_that_is_no_url_is_told_once_with_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_seeds([text])
    assert str(refused.value) == f"seed {text!r} is not a URL{said}"


def test_few_of_many_seeds_are_looked_up_before_a_crawl_begins(tmp_path: Path, asked: list[str]) -> None:
    seeds = [f"http://h{number}.test/{page}" for number in range(200) for page in range(3)]
    lines = told(tmp_path, seeds, contact="me@example.org")
    assert asked == [f"h{number}.test" for number in range(16)]
    assert len(lines) == len(asked)
