"""A crawl that is typed in a folder of anybody's files runs none of them, whichever way it is started.

The folder holds a module for every name of the standard library, of what Gossamer depends on, and of Gossamer itself;
each leaves a mark when it runs. A crawl with a page that a parser process reads, a stage in a process of its own and tables
at its end starts every kind of child.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from gossamer.crawls.compiling import shipped
from gossamer.crawls.processes import divide
from gossamer.engine.wiring import to_toml
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

ROOT = Path(__file__).parents[2]

#: Files that are Python's own, or look like it: each says on the disk that it ran, and in which process.
MARK = "import sys\nwith open({mark!r}, 'a') as file:\n    file.write(f'{name} in {{sys.argv}} {{sys.orig_argv}}\\n')\n"

#: What the parser of pages does not read in the crawl's own process (process.apart).
LARGE = "<title>Large</title>" + "<p>A line of a long page about lace.</p>\n" * 110_000

#: The installed command: what an installer makes of `[project.scripts]`.
SCRIPT = "import sys\nfrom {module} import {name}\nsys.exit({name}())\n"

#: A program that has been at work before it comes to the folder, as a notebook has, with that folder first on its path.
SESSION = """
import os, sys
sys.path.insert(0, "")
import gossamer
def crawl(url, output):
    return [page.url for page in gossamer.crawl_sync(url, output=output, delay=0, robots="ignore")]
assert len(crawl(sys.argv[1], sys.argv[2] + "/first")) == 2
os.chdir(sys.argv[3])
assert len(crawl(sys.argv[1], sys.argv[2] + "/second")) == 2
"""


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    with FakeWeb({"/": '<title>One</title><a href="/large">x</a>', "/large": LARGE}) as web:
        yield web


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where somebody's files lie."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    installed = {name for name in metadata.packages_distributions() if name.isidentifier()}
    for name in {*sys.stdlib_module_names, *installed, "gossamer", "sitecustomize", "usercustomize", "lz4", "pandas"}:
        plant(folder, name)
    return folder


def plant(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text(MARK.format(mark=str(folder / "RAN"), name=name), encoding="utf-8")


def ran(folder: Path) -> str:
    """What ran of the folder."""
    mark = folder / "RAN"
    return mark.read_text(encoding="utf-8") if mark.exists() else ""


def environment() -> dict[str, str]:
    """As a person's shell has it: nothing that keeps the folder out is set."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])}


def options(web: FakeWeb, tmp_path: Path) -> list[str]:
    """A crawl with children of every kind."""
    wiring = tmp_path / "divided.toml"
    wiring.write_text(to_toml(divide(shipped("default"), ("process", "links", "filter"), "elsewhere")), "utf-8")
    return ["crawl", web.url("/"), "--wiring", str(wiring), "-o", str(tmp_path / "crawl"), "--delay", "0"]


def spare_python(folder: Path, tmp_path: Path) -> None:
    """Take away what Python itself runs of the folder under `-m`, before any of our lines: the module that is asked for by
    name, and the few that its own start imports."""
    (folder / "gossamer.py").unlink()
    (tmp_path / "nothing.py").touch()
    path = {**environment(), "PYTHONPATH": str(tmp_path)}
    while subprocess.run([sys.executable, "-m", "nothing"], cwd=folder, env=path, stderr=subprocess.DEVNULL).returncode:
        for line in ran(folder).splitlines():
            (folder / f"{line.partition(' ')[0]}.py").unlink()
        (folder / "RAN").unlink()


def assert_crawled(command: list[str], folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=HUNG_AFTER)
    assert ran(folder) == ""
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "crawl" / "tables").rglob("pages/*.parquet")), "no tables were made"


def test_the_launcher_runs_no_file_of_the_current_folder(web: FakeWeb, folder: Path, tmp_path: Path) -> None:
    assert_crawled([str(ROOT / "gossamer"), *options(web, tmp_path)], folder, tmp_path)


def test_the_installed_command_runs_no_file_of_the_current_folder(web: FakeWeb, folder: Path, tmp_path: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    module, _, name = scripts["gossamer"].partition(":")
    script = tmp_path / "bin" / "gossamer"
    script.parent.mkdir()
    script.write_text(SCRIPT.format(module=module, name=name), encoding="utf-8")
    assert_crawled([sys.executable, str(script), *options(web, tmp_path)], folder, tmp_path)


def test_python_m_gossamer_runs_no_file_of_the_current_folder(web: FakeWeb, folder: Path, tmp_path: Path) -> None:
    spare_python(folder, tmp_path)
    assert_crawled([sys.executable, "-m", "gossamer", *options(web, tmp_path)], folder, tmp_path)


def test_a_session_in_the_current_folder_starts_no_process_that_runs_its_files(
    web: FakeWeb, folder: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-P", "-c", SESSION, web.url("/"), str(tmp_path), str(folder)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=HUNG_AFTER)
    assert done.returncode == 0, done.stderr
    assert ran(folder) == ""


@pytest.mark.parametrize("command", ["simweb --hosts 3 --pages 30 --processes 2 --port 0", "demo --seconds 0.5"])
def test_the_simulated_web_runs_no_file_of_the_current_folder(command: str, folder: Path, tmp_path: Path) -> None:
    spare_python(folder, tmp_path)
    line = [sys.executable, "-m", "gossamer", *command.split()]
    with subprocess.Popen(line, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
    assert ran(folder) == ""


#: Somebody's own program with a processor in a module beside it, which a parser process has to find.
PROGRAM = """
import asyncio
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit
from gossamer.parsing.isolation import Parsers, spec_of
from gossamer.parsing.findings import Reading
from lace import Lace

async def main():
    answer = Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=b"<p>lace")
    parsers = Parsers(1, 30.0, 0)
    visit = Visit(Task("http://a.test/", "a.test"), answer, mime="text/html")
    findings = await parsers.read(visit, [spec_of(Lace())], Reading("", "plain", False, "main"))
    await parsers.close()
    print(findings.found[0].relation)

asyncio.run(main())
"""

LACE = """
from gossamer.engine.sheet import Sheet
from gossamer.engine.unit import Provider
from gossamer.values.visit import Found

class Lace(Provider[Sheet]):
    def process(self, document):
        import colorsys  # the standard library's, not what lies beside this
        yield Found("http://lace.test/", "lace")
"""


@pytest.mark.parametrize("way", ["script", "session"])
def test_modules_beside_the_program_are_found_behind_all_that_is_installed(way: str, tmp_path: Path) -> None:
    (tmp_path / "lace.py").write_text(LACE, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    plant(tmp_path, "colorsys")
    command = ["program.py"] if way == "script" else ["-c", PROGRAM]
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=HUNG_AFTER
    )
    assert (done.returncode, done.stdout) == (0, "lace\n"), done.stderr
    assert ran(tmp_path) == ""
