"""`gossamer new`: the beginning of a part of one's own, with a test that passes."""

import keyword
from pathlib import Path

import click

from gossamer.cli.telling import tell_plain
from gossamer.model.errors import UsageError

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

Name it in a wiring (gossamer topology --format toml > mine.toml writes one):
    [providers.{name}]
    use = "{name}:{kind}"
and beside the others in `filters = {{ follow = [...] }}`. Then: gossamer crawl URL --wiring mine.toml
Test it: python -m pytest test_{name}.py
"""

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider


class {kind}(Provider[NoSettings]):
    """Refuses links to pages for printers. Contract: gossamer.contracts.filtering.UrlFilter."""

    def judge(self, links, source):
        """For each link an empty string, or the name of the rule that refuses it."""
        return ["{name}" if link.url.endswith("/print") else "" for link in links]
'''

_FILTER_TEST = """\
from gossamer.model.task import Task
from gossamer.model.visit import Link
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

#: What can be begun -> the file, and its test.
TEMPLATES = {"processor": (_PROCESSOR, _PROCESSOR_TEST), "filter": (_FILTER, _FILTER_TEST)}


@click.command()
@click.argument("part", type=click.Choice(sorted(TEMPLATES)))
@click.argument("name")
@click.option(
    "-o", "--output", metavar="DIR", default=".", help="Write into this directory instead of the current one."
)
def new(part: str, name: str, output: str) -> int:
    """Begin a processor or filter of your own: NAME.py, and test_NAME.py that passes. Nothing is written over.

    \b
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
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / file).open("x", encoding="utf-8") as out:
                out.write(text.format(name=name, kind=kind))
        except OSError as error:
            raise UsageError(f"{folder / file} cannot be written: {error.strerror}") from None
        tell_plain(f"wrote {folder / file}")
    return 0
