"""A crawl with `--rdf` finds what pages of a simulated web state in structured data; the auditor finds out one that does not."""

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from gossamer.cli.main import commands, main
from gossamer.simweb import ServeOptions, WebSpec, beside
from gossamer.simweb.audit import Audit, AuditOptions, audit, to_text

SPEC = WebSpec(seed=4, pages=60, hosts=3, size_median=2000, statements=3, trap_share=0, flaky_share=0)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The log of the web, and the lines of the CSV file of the crawl's triples."""
    folder = tmp_path_factory.mktemp("statements")
    log, crawl, triples = folder / "requests.log", folder / "crawl", folder / "triples.csv"
    with beside(SPEC, ServeOptions(log=log)) as port:
        network = ["--resolve", f"*.sim=127.0.0.1:{port}", "--allow-network", "127.0.0.0/8", "--delay", "0", "--quiet"]
        assert main(["crawl", "http://www.amber0.sim/", "--scope", "any", "--rdf", "-o", str(crawl), *network]) == 0
    question = "SELECT graph, predicate, object FROM triples ORDER BY ALL"
    assert main(["query", str(crawl), question, "-f", "csv", "-o", str(triples)]) == 0
    return log, triples.read_text().splitlines(keepends=True)


def judged(crawled: tuple[Path, list[str]], folder: Path, lines: list[str]) -> Audit:
    file = folder / "triples.csv"
    file.write_text("".join(lines))
    return audit(crawled[0], AuditOptions(triples=file))


def test_every_statement_of_a_simulated_web_is_found_and_found_once(
    crawled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    verdict = judged(crawled, tmp_path, crawled[1])
    statements = verdict.statements
    assert statements is not None
    assert (statements.found, statements.missed, statements.extra) == (statements.expected, 0, 0)
    assert statements.expected == SPEC.statements * verdict.coverage.found > 100
    assert f"Statements   {statements.found} of {statements.expected} triples" in to_text(verdict)


def test_an_auditor_finds_what_was_missed_invented_or_said_twice(
    crawled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    head, first, second, *others = crawled[1]
    third, *others = others
    wrong = [second.replace("statement", "invention"), third.replace("/name", "/label")]
    statements = judged(crawled, tmp_path, [head, first, first, *wrong, "cut\n", *others]).statements
    assert statements is not None
    assert (statements.missed, statements.extra) == (2, 4)
    missed = {text.partition(" ")[2] for text in statements.missed_examples}
    assert missed == {line.split(",")[2].strip() for line in (second, third)}


def test_the_questions_of_the_manual_are_answered(
    crawled: tuple[Path, list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    manual = Path(__file__).resolve().parents[2] / "docs/structured-data.md"
    asked = re.findall(r'^    gossamer sparql mine "(.+)"$', manual.read_text(), re.MULTILINE)
    assert len(asked) == 3
    found = []
    for question in asked:
        assert main(["sparql", str(crawled[0].parent / "crawl"), question, "-f", "csv"]) == 0
        found.append(capfd.readouterr().out.splitlines()[1:])
    pages = {line.split(",")[0] for line in crawled[1][1:]}
    assert found[0] == [str(len(pages))]
    assert sorted(found[1]) == [f"statement {number} of page 0" for number in range(3)]
    assert len(found[2]) == 3 and all(line.startswith("statement ") for line in found[2])


def test_a_file_without_triples_is_refused_in_one_line(crawled: tuple[Path, list[str]], tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("url,status\n")
    done = CliRunner().invoke(
        commands, ["simweb", "--audit", str(crawled[0]), "--triples", str(tmp_path / "other.csv")]
    )
    assert done.exit_code != 0 and "has no columns graph, predicate, object" in done.output
    plain = CliRunner().invoke(commands, ["simweb", "--audit", str(crawled[0]), "--json"])
    assert msgspec.json.decode(plain.output)["statements"] is None
