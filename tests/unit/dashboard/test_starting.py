"""The form of a new crawl: made of the table of options, without what names files, code or secrets."""

from pathlib import Path

import msgspec
import pytest

from gossamer.crawls.options import all_options
from gossamer.dashboard.jobs import CONSOLE, NOT_OF_A_FORM, offered_options, start
from gossamer.engine.sheet import properties
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import UsageError

#: Options whose values are texts of the person's own, and name nothing of this machine. A new one is judged before it comes here.
TEXTS = {
    "include", "exclude", "normalize", "filter", "only", "never", "until", "topic", "recrawl", "recrawl_rate", "interval",
    "user_agent", "contact", "header", "header_for", "language", "place", "agent_place", "render_rule",
}  # fmt: skip


def test_every_option_is_in_the_form_or_has_a_reason_not_to_be() -> None:
    offered = {one.name for one in offered_options()}
    named = {one.name for one in properties(all_options()) if one.names}
    assert offered | named | NOT_OF_A_FORM == {one.name for one in properties(all_options())}
    assert offered & (named | NOT_OF_A_FORM) == set()


def test_an_option_that_takes_a_text_is_offered_only_where_the_text_names_no_file_and_no_code() -> None:
    assert {one.name for one in offered_options() if "str" in one.type} == TEXTS
    assert {"output", "auth", "proxy", "items", "sinks", "relevance", "resolve", "allow_network"} <= {
        one.name for one in properties(all_options()) if one.names
    }


def test_a_form_with_the_name_of_a_crawl_that_is_there_begins_nothing_and_touches_nothing(tmp_path: Path) -> None:
    console = tmp_path / "mine" / CONSOLE
    console.parent.mkdir(parents=True)
    console.write_text("said before")
    body = msgspec.json.encode({"folder": str(tmp_path), "name": "mine", "seeds": ["http://127.0.0.1:9/"]})
    with pytest.raises(UsageError, match="is there already"):
        start([tmp_path], body)
    (tmp_path / "mine" / CRAWL_FILE).write_text("")
    with pytest.raises(UsageError, match="holds a crawl"):
        start([tmp_path], body)
    assert console.read_text() == "said before"
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["allow_network", "resolve", "output", "proxy"])
def test_no_token_opens_the_network_or_the_files_of_this_machine(tmp_path: Path, name: str) -> None:
    form = {"folder": str(tmp_path), "name": "x", "seeds": ["http://127.0.0.1:9/"], "options": {name: ["10.0.0.0/8"]}}
    with pytest.raises(UsageError, match=f"a form has no option '{name}'"):
        start([tmp_path], msgspec.json.encode(form))
    assert not list(tmp_path.iterdir())
