"""The measures of the house: how much code there is, and how much of it a reader meets. A check holds them (`./gossamer dev
check house`).

Place in the flow: `tools/chores/check.py` calls :func:`problems`; `python -P -m tools.house` prints what is measured.
`tools/house.toml` holds the most that each measure may be. A change that raises one writes there why; one that lowers it lowers
the figure, too.

A crawl of a small site in a process of its own tells how many modules are imported, and how many files and functions of
ours one page passes: everything that is called between the commit of an early page and the end, while the site's server
works in another process.
"""

import ast
import collections
import io
import json
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools import ROOT

#: The most that each measure may be, and why.
LIMITS = ROOT / "tools" / "house.toml"

#: A file of so many lines seldom tells a whole thing.
SMALL = 80

#: A base name that stands for more files than this says nothing, but for these, which say the same thing of each subject.
REPEATED = 3
EXPECTED_NAMES = frozenset(("__init__", "__main__", "contract", "values", "options", "commands", "tables"))

#: The crawl that is measured: a site of pages that link to each other, fetched without pauses.
PAGES = 13
REQUESTS = PAGES + 1  # one for robots.txt


def sources() -> list[Path]:
    """The Python files of `src` and `tools`."""
    return sorted(path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*.py"))


def measured() -> dict[str, int]:
    """The measures of the files, and those of a crawl's way through them."""
    texts = {path: path.read_text(encoding="utf-8") for path in sources()}
    names = collections.Counter(path.stem for path in texts if path.is_relative_to(ROOT / "src"))
    repeated = [name for name, files in names.items() if files > REPEATED and name not in EXPECTED_NAMES]
    small = [path for path, text in texts.items() if text.count("\n") <= SMALL and path.stem != "__init__"]
    return {
        "files": len(texts),
        "lines": sum(text.count("\n") for text in texts.values()),
        "lines_of_code": sum(sum(1 for _ in lines_of_code(text)) for text in texts.values()),
        "small_files": len(small),
        "repeated_names": len(repeated),
        "lines_of_architecture": (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").count("\n"),
        **passed(),
    }


def lines_of_code(text: str) -> Iterator[int]:
    """The numbers of the lines that are neither docstring nor comment nor blank."""
    spoken = set()
    for node in ast.walk(ast.parse(text)):
        for one in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                spoken |= set(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    code = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            code |= set(range(token.start[0], token.end[0] + 1))
    yield from code - spoken


def passed() -> dict[str, int]:
    """The modules that a small crawl imports and passes, told by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from tools import house; house.tell_crawl()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the measured crawl failed:\n{done.stderr}")
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def tell_crawl() -> None:
    """Crawl a small site, and print what its pages passed: the calls of ours from the request for its first page to that for its
    last one, since the start of a crawl and its end are no part of the way of a page."""
    import asyncio
    import tempfile
    from typing import Any

    from gossamer.crawls.crawl import Crawl
    from gossamer.crawls.options import all_options
    from gossamer.engine.sheet import build

    own_code, pages = str(ROOT / "src" / "gossamer"), 0
    calls = collections.Counter[tuple[str, str]]()

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal pages
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(own_code):
            return
        pages += code.co_qualname == "Transfer.begin"
        if 1 < pages < REQUESTS:
            calls[code.co_filename, code.co_qualname] += 1

    serving = "import sys; from tools import house; house.serve()"
    with subprocess.Popen([sys.executable, "-P", "-c", serving], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        seed = server.stdout.readline().strip()
        try:
            with tempfile.TemporaryDirectory() as folder:
                options = {"output": f"{folder}/crawl", "delay": 0, "domain_delay": 0, "ip_delay": 0, "linger": 0}
                sys.setprofile(count)
                try:
                    asyncio.run(Crawl([seed], build(all_options(), options), tables=False).run())
                finally:
                    sys.setprofile(None)
        finally:
            server.kill()
    own = [name for name in sys.modules if name.partition(".")[0] == "gossamer"]
    figures = {
        "modules_of_a_crawl": len(own),
        "files_of_a_page": len({file for file, _ in calls}),
        "functions_of_a_page": len(calls),
        "calls_of_a_page": round(sum(calls.values()) / (REQUESTS - 2)),
    }
    print(json.dumps(figures))


def serve() -> None:
    """Serve the site of the measured crawl until this process is ended."""
    import asyncio

    from gossamer.testing import FakeWeb

    def page(number: int) -> str:
        links = "".join(f'<a href="/{other}">page {other}</a> ' for other in range(PAGES))
        return f"<!doctype html><title>{number}</title><p>{'Words of this page. ' * 40}{number}</p>{links}"

    async def run() -> None:
        pages = {f"/{number}": page(number) for number in range(PAGES)}
        async with FakeWeb({**pages, "/robots.txt": "User-agent: *\nAllow: /\n"}) as web:
            print(web.url("/0"), flush=True)
            await asyncio.Event().wait()

    asyncio.run(run())


def problems() -> list[str]:
    """Measures above what `tools/house.toml` allows."""
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    found = measured()
    unknown = [f"tools/house.toml: there is no measure {name!r}" for name in limits if name not in found]
    risen = [
        f"{name}: {figure:,} where tools/house.toml allows {limits[name]['most']:,}"
        for name, figure in found.items()
        if name in limits and figure > limits[name]["most"]
    ]
    return unknown + risen


if __name__ == "__main__":
    for name, figure in measured().items():
        print(f"{name:<24} {figure:>9,}")
