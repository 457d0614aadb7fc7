"""Every state of a new directory is nothing or a crawl, and what is damaged of a crawl's wiring is told with its reason."""

from pathlib import Path

import msgspec
import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.directory import CrawlPlace, read_wiring
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import free_name
from gossamer.engine.planning import plan
from gossamer.engine.wiring import Wiring, write
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import CrawlDirectoryError, UsageError


def test_a_directory_with_only_an_unfinished_wiring_is_free(tmp_path: Path) -> None:
    (tmp_path / f"{CRAWL_FILE}.new").write_text("[compo")
    CrawlPlace(tmp_path, CrawlOptions()).check()
    (tmp_path / "else").touch()
    with pytest.raises(UsageError, match="is not empty and holds no crawl"):
        CrawlPlace(tmp_path, CrawlOptions()).check()


def test_a_directory_that_another_process_takes_after_the_check_is_left_to_it(tmp_path: Path) -> None:
    path, wiring = tmp_path / "crawl", shipped("default")
    place = CrawlPlace(path, CrawlOptions())
    place.check()
    path.mkdir()
    with pytest.raises(UsageError, match="was taken by another process meanwhile; try again"):
        place.make(wiring, plan(wiring, catalog()), lambda: None)
    assert list(path.iterdir()) == []


def test_a_link_that_leads_nowhere_is_no_free_name(tmp_path: Path) -> None:
    (tmp_path / "crawl").symlink_to(tmp_path / "absent")
    assert free_name(tmp_path / "crawl") == tmp_path / "crawl-2"


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


def a_crawl(path: Path, text: str = "old") -> Path:
    path.mkdir()
    write(path / CRAWL_FILE, Wiring(description=text))
    return path


def test_a_crawl_is_never_replaced_unasked(tmp_path: Path) -> None:
    path = a_crawl(tmp_path / "crawl")
    with pytest.raises(UsageError, match="holds a crawl; go on with it"):
        CrawlPlace(path, CrawlOptions()).check()
    CrawlPlace(path, CrawlOptions(resume=True)).check()
    CrawlPlace(path, CrawlOptions(overwrite=True)).check()
    assert read_wiring(path).description == "old"


def test_a_file_and_a_full_folder_are_no_place_for_a_crawl(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is a file"):
        CrawlPlace(file, CrawlOptions(overwrite=True)).check()
    with pytest.raises(UsageError, match="is not empty and holds no crawl"):
        CrawlPlace(tmp_path, CrawlOptions(overwrite=True)).check()


@pytest.mark.parametrize(("has_begun", "left"), [(False, "old"), (True, "new")])
def test_a_crawl_that_is_replaced_comes_back_unless_the_new_one_has_begun(
    tmp_path: Path, has_begun: bool, left: str
) -> None:
    place = CrawlPlace(a_crawl(tmp_path / "crawl"), CrawlOptions(overwrite=True))
    new = msgspec.structs.replace(shipped("default"), description="new")
    made = place.make(new, plan(new, catalog()), lambda: None)
    assert made and place.holds_another
    place.settle(made, has_begun)
    assert read_wiring(place.path).description == left
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]


def test_what_a_killed_run_left_aside_is_not_overwritten(tmp_path: Path) -> None:
    place = CrawlPlace(a_crawl(tmp_path / "crawl"), CrawlOptions(overwrite=True))
    a_crawl(tmp_path / "crawl.replaced")
    with pytest.raises(UsageError, match="is in the way"):
        place.check()
