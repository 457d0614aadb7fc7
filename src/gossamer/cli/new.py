"""`gossamer new` and `gossamer topology`: the beginning of a part of one's own, with a test that passes, and of a wiring."""

import keyword
from pathlib import Path
from typing import Any

import click
import msgspec

from gossamer.cli.helping import option
from gossamer.cli.options import OptionsInGroups, crawl_options, read_options, read_seed_files, read_sets
from gossamer.cli.saying import tell_plain
from gossamer.engine.errors import refusing
from gossamer.values.errors import UsageError

_PROCESSOR = '''\
"""Takes {name} out of pages.

Run it: python {name}.py https://example.org/
Test it: python -m pytest test_{name}.py
"""

import sys

import gossamer


@gossamer.processor("text/html")
def {name}(document):
    """Yields an item for each heading of a page."""
    for heading in document.css("h1"):
        yield gossamer.Item(kind="{name}", url=document.url, value={{"heading": heading.text(strip=True)}})


if __name__ == "__main__":
    for page in gossamer.crawl_sync(sys.argv[1:], max_pages=100, items="{name}.csv"):
        print(page.status, page.url)
'''

_PROCESSOR_TEST = """\
from gossamer.testing import stored_document
from {name} import {name}


def test_headings_are_found():
    [item] = {name}(stored_document("<h1>Welcome</h1>"))
    assert item.value == {{"heading": "Welcome"}}
"""

_FILTER = '''\
"""Refuses links: the filter {name}.

Say where it is in the pyproject.toml of a package, and install that (pip install -e .):
    [project.entry-points."gossamer.providers"]
    {name} = "{name}:{kind}"
Then name it in a wiring (gossamer topology --format toml > mine.toml writes one):
    [providers.{name}]
    use = "{name}"
and beside the others in `follow = [...]`. Then: gossamer crawl URL --wiring mine.toml
Test it: python -m pytest test_{name}.py
"""

from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider


class {kind}(Provider[NoSettings]):
    """Refuses links to pages for printers. Contract: gossamer.expressions.contract.UrlFilter."""

    def judge(self, links, source):
        """Returns for each link an empty string, or the name of the rule that refuses it."""
        return ["{name}" if link.url.endswith("/print") else "" for link in links]
'''

_FILTER_TEST = """\
from gossamer.values.task import Task
from gossamer.values.visit import Link
from gossamer.testing import check_url_filter
from {name} import {kind}

SOURCE = Task("https://example.test/", "example.test")


def test_pages_for_printers_are_refused():
    links = [Link("https://example.test/a"), Link("https://example.test/a/print")]
    assert {kind}().judge(links, SOURCE) == ["", "{name}"]


def test_the_filter_keeps_its_contract():
    passes, refuses = ["https://example.test/a"], ["https://example.test/a/print"]
    check_url_filter({kind}(), passes, refuses, SOURCE)
"""

_SPIDER = '''\
"""The spider {name}: takes a site apart.

Run it: gossamer run {name}.py https://example.org/ -o {name} --items {name}.csv
Go on with it: gossamer run {name}.py -o {name} --resume
Test it: python -m pytest test_{name}.py
"""

from collections.abc import Iterator

import gossamer

spider = gossamer.Spider("https://example.org/", max_pages=100)


@spider.page()
def listing(page: gossamer.Page) -> Iterator[gossamer.Result]:
    """Handles pages without a label; requests the pages that they link to with the label `detail`."""
    yield page.follow_all("a", label="detail")


@spider.page("detail")
def detail(page: gossamer.Page) -> Iterator[gossamer.Result]:
    """Handles pages with the label `detail`: yields an item, and requests further such pages."""
    yield {{"url": page.url, "heading": page.text("h1")}}
    yield page.follow_all("a", label="detail")


@spider.failed
def failed(page: gossamer.Page) -> None:
    """Handles requests that brought no document."""
    print(page.outcome, page.url, page.error)


if __name__ == "__main__":
    spider.run(items="{name}.csv")
'''

_SPIDER_TEST = """\
from gossamer.testing import handled
from {name} import spider


def test_a_listing_leads_to_details():
    [link] = handled(spider, "<a href='/1'>one</a>").found
    assert link.href == "/1" and link.request.label == "detail"


def test_a_detail_is_an_item():
    [item] = handled(spider, "<h1>One</h1>", url="https://example.test/1", label="detail").items
    assert item.value == {{"url": "https://example.test/1", "heading": "One"}}
"""

#: Kinds of extensions that can be begun -> the file, and its test.
TEMPLATES = {
    "processor": (_PROCESSOR, _PROCESSOR_TEST),
    "filter": (_FILTER, _FILTER_TEST),
    "spider": (_SPIDER, _SPIDER_TEST),
}


@click.command()
@click.argument("part", type=click.Choice(sorted(TEMPLATES)))
@click.argument("name")
@option("-o --output DIR", "Write into this directory instead of the current one.", default=".")
def new(part: str, name: str, output: str) -> int:
    """Begin a spider, processor or filter of your own: write NAME.py, and test_NAME.py with a test that passes. No file
    is overwritten.

    \b
    gossamer new spider books
    gossamer new processor prices
    gossamer new filter no_printers
    """
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise UsageError(
            f"{name!r} cannot be the name of a Python module; write letters, digits and underscores, as my_{part}"
        )
    folder = Path(output)
    kind = "".join(word[:1].upper() + word[1:] for word in name.split("_")) or name
    texts = dict(zip((f"{name}.py", f"test_{name}.py"), TEMPLATES[part], strict=True))
    for file in texts:
        if (folder / file).exists():
            raise UsageError(f"{folder / file} exists; choose another name")
    for file, text in texts.items():
        with refusing(UsageError, f"{folder / file} cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / file).open("x", encoding="utf-8") as out:
                out.write(text.format(name=name, kind=kind))
        tell_plain(f"wrote {folder / file}")
    return 0


# `gossamer topology`: the graph of a wiring, or of the crawl that some options make.


@click.command(cls=OptionsInGroups)
@click.argument("names", metavar="[WIRING] [SEED]...", nargs=-1)
@option("--seeds seed_files FILE...", "Read seeds from a file, one a line.")
@crawl_options
@option("--config FILE", "Read options from a TOML file; the command line overrides it.")
@option("--set sets UNIT.SETTING=VALUE...", "Set any setting of any unit (repeatable).")
@click.option(
    "--format", "form", type=click.Choice(["text", "toml", "dot", "mermaid", "json"]), default="text", show_default=True
)
def topology(
    names: tuple[str, ...],
    seed_files: tuple[str, ...],
    config: str | None,
    sets: tuple[str, ...],
    form: str,
    **given: Any,
) -> None:
    """Show components, connectors and providers of WIRING (a file, or the name of a shipped one; default: default).

    Crawl options fill the wiring in, so that --format toml prints a whole crawl that you can edit and run. Passwords
    are not printed; give their options again when you run it.

    \b
    gossamer topology http://localhost:8000/ --depth 3 --format toml > my.toml
    gossamer crawl --wiring my.toml
    """
    # The imports below load every part that the wiring names; help does not.
    from gossamer.crawls.catalog import catalog
    from gossamer.crawls.compiling import find_wiring
    from gossamer.crawls.crawlers import compile_with_crawlers
    from gossamer.crawls.plan import read_seeds
    from gossamer.engine.graph import to_dot, to_json, to_mermaid, to_text, without_secrets
    from gossamer.engine.planning import plan
    from gossamer.engine.wiring import to_toml

    seeds = read_seeds([*(name for name in names if "://" in name), *read_seed_files(seed_files)])
    named = [name for name in names if "://" not in name]
    if len(named) > 1:
        raise click.UsageError(f"name one wiring, not {len(named)}: {', '.join(named)}")
    base = find_wiring(named[0]) if named else None
    wiring = compile_with_crawlers(seeds, read_options(given, config), base, read_sets(sets))
    graph = plan(wiring, catalog())
    if form == "toml":
        print(to_toml(without_secrets(graph)), end="")
    elif form == "json":
        print(msgspec.json.format(msgspec.json.encode(to_json(graph))).decode())
    else:
        print({"text": to_text, "dot": to_dot, "mermaid": to_mermaid}[form](graph))
