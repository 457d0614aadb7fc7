"""The promises of ./gossamer dev: its verbs, the locks, the change fragments."""

import re
import sys
from pathlib import Path

import pytest

from tools import REQUIREMENTS, ROOT
from tools import __main__ as dispatcher
from tools.chores import check, docs, release
from tools.killing import CAMPAIGNS
from tools.killing import main as campaign


def test_dev_alone_lists_every_verb_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatcher.main([]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == sorted(dispatcher.verbs())
    assert all(len(line.split(maxsplit=1)[1]) > 10 for line in lines)


def test_an_unknown_verb_is_refused_with_the_nearest_known_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatcher.main(["chekc"]) == 2
    assert capsys.readouterr().err == "gossamer dev: there is no 'chekc'; did you mean 'check'?\n"


def test_every_verb_is_documented_for_contributors() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [verb for verb in dispatcher.verbs() if f"| `{verb}" not in text] == []


@pytest.mark.parametrize("verb", CAMPAIGNS)
def test_the_help_of_a_campaign_names_its_options(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        campaign(verb, ["--help"])
    told = capsys.readouterr().out
    assert all(f"--{option} " in told for option in (*CAMPAIGNS[verb].options, "seed", "folder"))


def test_an_unknown_check_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["tipes"]) == 2
    assert "lint, format, types" in capsys.readouterr().err


def test_one_named_test_runs_alone_and_the_suite_runs_on_every_core() -> None:
    assert "-n" in check.command([])
    assert "-n" not in check.command(["tests/unit/test_url.py::test_one"])
    assert check.command(["-n", "3"]).count("-n") == 1


def test_the_locks_are_fresh_and_the_larger_holds_the_smaller() -> None:
    assert release.problems() == []
    assert release.pins("run").keys() <= release.pins("dev").keys()


@pytest.mark.parametrize("kind", ["run", "dev"])
def test_a_lock_has_hashes_and_names_no_place(kind: str) -> None:
    text = (REQUIREMENTS / f"{kind}.lock").read_text(encoding="utf-8")
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(packages) == len(release.pins(kind))
    assert all("--hash=sha256:" in package for package in packages)
    assert "/" not in re.sub(r"^# Made by .*$", "", text, count=1, flags=re.MULTILINE)


def test_every_change_fragment_is_well_formed() -> None:
    assert release.problems_of_fragments() == []


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("Bad Name.added.md", "Something.", "the name must be"),
        ("fine.improved.md", "Something.", "KIND one of"),
        ("fine.added.md", " \n", "is empty"),
        ("fine.added.md", "- A bullet.", "without heading or bullet"),
        ("fine.added.md", "No full stop", "ending in a full stop"),
    ],
)
def test_a_malformed_fragment_is_told_in_one_line(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (problem,) = release.problems_of_fragments(tmp_path)
    assert problem.startswith(f"changes/{name}: ")
    assert reason in problem


def test_the_change_log_begins_with_summaries_and_groups_fragments_by_kind(tmp_path: Path) -> None:
    written = {
        "b.fixed.md": "Mended.",
        "a.added.md": "New,\nand good.",
        "c.added.md": "Newer.",
        "d.summary.md": "A good\nversion.",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    read = [release.read(path) for path in release.paths(tmp_path)]
    assert release.section(read, "1.0 (today)") == (
        "## 1.0 (today)\n\nA good\nversion.\n\n### Added\n\n- New,\n  and good.\n- Newer.\n\n### Fixed\n\n- Mended.\n"
    )


def test_the_reference_is_what_the_code_says() -> None:
    assert docs.problems() == []


def test_what_the_readme_writes_is_no_folder_of_the_checkout() -> None:
    named = re.findall(r"^\./gossamer .* -o (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named
    assert not [name for name in named if (ROOT / name).exists()]


def test_a_package_is_not_built_into_a_folder_that_holds_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.whl").touch()
    assert release.package(["--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"gossamer dev package: {tmp_path} is not empty\n"


def test_a_python_that_is_not_there_is_named_and_the_others_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(release.pythons([sys.executable, "3.999"]).values()) == [sys.executable]
    assert capsys.readouterr().err == "Python 3.999: not on this machine\n"


@pytest.mark.long
def test_the_package_works_without_the_checkout() -> None:
    assert release.package(["--python", sys.executable]) == 0
