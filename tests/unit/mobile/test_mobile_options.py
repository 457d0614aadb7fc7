"""What of a crawl's options crawlers can obey; what they cannot is refused with a reason, and the manual lists it."""

import re
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.values.errors import UsageError

#: Each option that no crawler can obey, with some value.
REFUSED: dict[str, Any] = {
    "normalize": ("www",),
    "ads": "none",
    "max_links": 7,
    "max_page_size": 1_000,
    "sitemaps": True,
    "follow_nofollow": True,
    "page_requisites": True,
    "mirror": "mirrored",
    "language": ("de",),
    "topic": ("kidney",),
    "topic_page": ("http://a.test/",),
    "relevance": "here:Relevance",
    "recrawl": "adaptive",
}


def listed() -> dict[str, str]:
    """Option -> reason, as the table of the manual has them."""
    guide = Path(__file__).parents[3].joinpath("docs", "mobile.md").read_text(encoding="utf-8")
    table = guide.partition("| option that is refused | reason |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `--([a-z-]+)` \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) == len(table.splitlines())
    return {option.replace("-", "_"): reason.replace("`", "") for option, reason in rows}


def test_the_manual_lists_every_option_that_is_refused() -> None:
    assert list(listed()) == list(REFUSED)


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_no_crawler_can_obey_is_refused_with_the_reason_of_the_manual(
    option: str, tmp_path: Path
) -> None:
    given = {"mobile": True, "runtime": (f"a.test={tmp_path}",), option: REFUSED[option]}
    with pytest.raises(UsageError) as refusal:
        compile_wiring(["http://a.test/"], build(all_options(), given))
    told = str(refusal.value)
    assert told == f"--{option.replace('_', '-')} does not go with --mobile: {listed()[option]}"
