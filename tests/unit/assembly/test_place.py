"""Every state of a new directory is nothing or a crawl, and what is damaged of a crawl's wiring is told with its reason."""

from pathlib import Path

import pytest

from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.place import CrawlPlace, read_wiring
from gossamer.flow.wiring import Wiring, write
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.query.places import CRAWL_FILE


def test_a_directory_with_only_an_unfinished_wiring_is_free(tmp_path: Path) -> None:
    (tmp_path / f"{CRAWL_FILE}.new").write_text("[compo")
    CrawlPlace(tmp_path, CrawlOptions()).check()
    (tmp_path / "else").touch()
    with pytest.raises(UsageError, match="is not empty and holds no crawl"):
        CrawlPlace(tmp_path, CrawlOptions()).check()


def test_what_came_to_nothing_is_gone_at_once(tmp_path: Path) -> None:
    path = tmp_path / "crawl"
    (path / "logs").mkdir(parents=True)
    CrawlPlace(path, CrawlOptions()).settle(made=True, has_begun=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", range(0, 120, 7))
def test_a_wiring_that_was_cut_anywhere_is_refused_with_the_reason(tmp_path: Path, kept: int) -> None:
    path = tmp_path / CRAWL_FILE
    write(path, Wiring(description="what it is for"))
    whole = path.read_text()
    assert read_wiring(tmp_path).description == "what it is for"
    path.write_text(whole[: min(kept, len(whole) - 2)])
    if path.read_text() == whole:
        return
    with pytest.raises(CrawlDirectoryError, match=r"is empty|is cut|not TOML"):
        read_wiring(tmp_path)


def test_a_wiring_that_a_person_wrote_needs_no_last_line(tmp_path: Path) -> None:
    (tmp_path / CRAWL_FILE).write_text('description = "mine"\n')
    assert read_wiring(tmp_path).description == "mine"
