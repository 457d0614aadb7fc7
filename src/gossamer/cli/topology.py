"""`gossamer check-filter`: does this expression let these URLs pass, and which part of it decides?

Place in the flow: the command line's door to :mod:`gossamer.expressions`, without a crawl.
"""

from pathlib import Path
from typing import Any

import click
import msgspec

from gossamer.cli.helping import option
from gossamer.cli.options import OptionsInGroups, crawl_options, read_options, read_seed_files, read_sets
from gossamer.cli.saying import given_urls, shown
from gossamer.documents.document import Document
from gossamer.engine.errors import SettingError
from gossamer.expressions.compiling import Expression, explain
from gossamer.expressions.facts import READS, facts_of
from gossamer.values.body import MAX_READ
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import canonical
from gossamer.values.visit import HTML_TYPES, Response, Visit

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
    # What follows imports every part that the wiring names; help does not.
    from gossamer.crawls.catalog import catalog
    from gossamer.crawls.compiling import find_wiring
    from gossamer.crawls.crawlers import compile_with_crawlers
    from gossamer.crawls.seeds import read_seeds
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


#: Facts that the command line can tell, apart from the URL: name, type, what stands for one that is not told, help.
_TOLD: tuple[tuple[str, type, Any, str], ...] = (
    ("depth", int, 0, "Links from the nearest seed."),
    ("relation", str, "a href", "Tag and attribute of the link."),
    ("anchor", str, "", "Text of the link."),
    ("nofollow", bool, False, "The link says nofollow."),
    ("status", int, 200, "Status code of the answer."),
    ("outcome", str, "ok", "How the fetch ended."),
    ("mime", str, "text/html", "Media type of the document."),
    ("size", int, 0, "Bytes of its body."),
    ("language", str, "", "Language of its text."),
    ("title", str, "", "Its title."),
    ("links", int, 0, "Links of the page."),
)


def _told(command: Any) -> Any:
    for name, kind, default, text in reversed(_TOLD):
        if kind is bool:
            command = click.option(f"--{name}", is_flag=True, help=text)(command)
        else:
            command = click.option(f"--{name}", type=kind, default=default, show_default=True, help=text)(command)
    return command


def _page_facts(page: Path | None, told: dict[str, Any], header: tuple[str, ...]) -> dict[str, Any]:
    """What a gate knows of a whole page: of the file, or of an empty page. An option that was given counts more than the file.
    Raises UsageError: the file cannot be read, or a field has no colon."""
    try:
        body = page.read_bytes()[:MAX_READ] if page else b""
    except OSError as error:
        raise UsageError(f"{page}: cannot be read: {error.strerror or error}") from None
    fields = [text.partition(":") for text in header]
    if bad := [name for name, colon, _ in fields if not (colon and name.strip())]:
        raise UsageError(f"--header {bad[0]!r}: write it as NAME: VALUE")
    headers = tuple((name.strip().lower(), value.strip()) for name, _, value in fields)
    url = "http://page.invalid/"
    visit = Visit(Task(url, "page.invalid"), Response(Outcome.OK, 200, headers=headers, body=body), mime=told["mime"])
    document = Document(visit)
    if page and visit.media_type in HTML_TYPES:
        told = {**told, "title": told["title"] or document.title}
    visit = msgspec.structs.replace(visit, title=told["title"])
    facts = facts_of(visit)
    size = told["size"] or len(body)
    return {
        **told,
        "size": size,
        "headers": headers,
        "text": facts.text,
        "types": facts.types,
        "keywords": facts.keywords,
    }


@click.command("check-filter")
@click.argument("expression")
@click.argument("urls", metavar="[URL]...", nargs=-1)
@_told
@click.option("--header", metavar="NAME: VALUE", multiple=True, help="A header field of the answer (repeatable).")
@option(
    "--page",
    "Take text, keywords, types, title and size from this file.",
    type=click.Path(path_type=Path, dir_okay=False),
)
def check_filter(
    expression: str, urls: tuple[str, ...], page: Path | None, header: tuple[str, ...], **told: Any
) -> int:
    """Show for each URL whether a filter EXPRESSION lets it pass, and which part of the expression decides.

    It prints a line for each URL: pass, refuse or error, the canonical URL, and the part or the reason, separated by
    tabs. Without URLs, or with `-`, it reads them from standard input, one a line.

    \b
    gossamer check-filter 'domain(org.example.*) and not extension(pdf, zip)' http://www.example.org/a.pdf
    gossamer check-filter 'store: mime(text/*) and size < 1MB' --mime text/css http://example.org/a.css
    gossamer check-filter 'store: keywords(health, patient*) >= 2' --page saved.html http://example.org/

    An expression for another gate than `follow` begins with the gate's name and a colon. The options give the facts
    that a gate knows beside the URL. docs/filters.md explains the language.

    Exit status: 0 all went well, 2 the expression or a URL cannot be read.
    """
    from gossamer.parsing.filters import split_gate  # the stage and its engine, which help waits for in vain

    gate, source = split_gate(expression)
    try:
        tree = Expression(source, gate).tree
    except SettingError as error:
        raise UsageError(str(error)) from None
    known = _page_facts(page, told, header) if "text" in READS[gate] else told
    facts = {name: value for name, value in known.items() if name in READS[gate]}
    status = 0
    for text in given_urls(urls):
        try:
            url = canonical(text)
        except UnreadableUrl as error:
            print("error", shown(text[:200]), shown(str(error)), sep="\t")
            status = 2
            continue
        holds, part = explain(tree, {**facts, "url": url})
        print("pass" if holds else "refuse", shown(url), shown(part), sep="\t")
    return status
