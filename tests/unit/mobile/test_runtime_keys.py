"""Keys of runtimes come from the environment or from a file that nobody else can read, and what is wrong is one line."""

from pathlib import Path

import pytest

from gossamer.mobile.manager.away import is_worth_sending
from gossamer.mobile.manager.links import ConfiguredRuntimes, RuntimesSheet
from gossamer.mobile.manager.making import KEY, CrawlersSheet, RuntimeKey, crawler_for, runtime_key
from gossamer.values.errors import UsageError
from gossamer.values.task import Task

ADDRESS = "http://127.0.0.1:8643"


def test_a_file_of_keys_is_read_if_it_is_private(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'["{ADDRESS}"]\nkey = "secret"\n')
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        runtime_key(ADDRESS, str(file))
    file.chmod(0o600)
    assert runtime_key(ADDRESS, str(file)) == RuntimeKey("secret")
    with pytest.raises(UsageError, match="no key for"):
        runtime_key("http://127.0.0.1:1", str(file))
    links = ConfiguredRuntimes(RuntimesSheet(addresses=(ADDRESS,), keys=str(file)))
    assert links.link(ADDRESS, "a.test") is links.link(ADDRESS, "b.test")


def test_without_a_file_the_environment_has_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    with pytest.raises(UsageError, match=KEY):
        runtime_key(ADDRESS, "")
    monkeypatch.setenv(KEY, "secret")
    assert runtime_key(ADDRESS, "").key == "secret"


def test_a_crawler_is_sent_only_where_it_may_cost_less_than_the_pages() -> None:
    assert not is_worth_sending(2_000, 1)
    assert is_worth_sending(2_000, 100) and is_worth_sending(2_000, None)


def test_a_crawler_has_the_depths_of_its_seeds_and_brings_external_urls_only_where_somebody_follows_them() -> None:
    tasks = [Task("http://a.test/x", "a.test", 2), Task("http://a.test/", "a.test")]
    alone = crawler_for(CrawlersSheet(seeds=("http://a.test/",), depth=4), tasks, "c1", 7)
    assert alone.facts.depths == (2, 0) and alone.program.limits.depth == 4
    assert alone.program.limits.external == 0 and alone.program.limits.pages == 7
    two = crawler_for(CrawlersSheet(seeds=("http://a.test/", "http://b.test/")), tasks, "c1")
    assert two.program.limits.external > 0 and two.program.around == ("http://a.test/",)
