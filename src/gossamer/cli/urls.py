"""`gossamer normalize`, `robots` and `check-filter`: what a URL is to a crawl, whether it may be fetched or followed, and which
rule says so.

Place in the flow: the command line's door to :mod:`gossamer.frontier.robots`, offline with a file; otherwise gate and protocol
module are put together without a crawl, to ask a few sites (:mod:`gossamer.analysis.inspecting`).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer.cli.helping import RenamedOption, option
from gossamer.cli.saying import canonical_base, given_bytes, given_urls, shown, tell
from gossamer.crawls.machine import coroutine_runner
from gossamer.values.errors import UnreadableUrl, UsageError

if TYPE_CHECKING:
    from gossamer.analysis.inspecting import RobotsAsking
    from gossamer.frontier.robots.rules import Decision

# `gossamer normalize`: the form in which a crawl would keep these URLs. The command line's door to :mod:`gossamer.values.url` and
# :mod:`gossamer.values.url_normalization`, without a crawl.


class _WithSteps(click.Command):
    """Says at the end of its help which steps there are, which only help has to know."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from gossamer.values.url_normalization import STEPS, USUAL

        self.epilog = f"Steps: {', '.join(STEPS)}; usual: {', '.join(USUAL)}. {self.epilog}"
        super().format_epilog(ctx, formatter)


@click.command(cls=_WithSteps, epilog="Exit status: 0 all are URLs, 2 a line is no URL.")
@click.argument("urls", metavar="[URL]...", nargs=-1)
@option("--base URL", "Resolve relative URLs against this one.")
@option(
    "--normalize --normalise normalize STEP...",
    "Also take this step (sort-query), or leave it out (no-tracking), as in a crawl (repeatable).",
    cls=RenamedOption,
)
@option("--parameters FILE", "Leave out the session and tracking parameters that this file lists.", default="")
def normalize(urls: tuple[str, ...], base: str | None, normalize: tuple[str, ...], parameters: str) -> int:
    """Show the canonical form of URLs: the form that a crawl fetches and compares.

    It prints a line for each URL: its canonical form, or `error:` and the reason why it has none. Without URLs, or with
    `-`, it reads them from standard input, one a line. docs/urls.md explains the steps.

    \b
    gossamer normalize 'HTTP://Example.org:80/a/../%7Ex?utm_source=y#top'
    gossamer normalize --base http://example.org/dir/ ../x < links.txt
    """
    from gossamer.parsing.links import parameters_of
    from gossamer.values.url import canonical
    from gossamer.values.url_normalization import Normaliser, chosen

    try:
        normalise = Normaliser(chosen(normalize), parameters_of(parameters))
    except ValueError as error:
        raise UsageError(f"--normalize: {error}") from None
    if base is not None:
        base = canonical_base(base)
    status = 0
    for text in given_urls(urls):
        try:
            print(shown(normalise(canonical(text, base))))
        except UnreadableUrl as error:
            print(f"error: {shown(str(error))}")
            status = 2
    return status


@click.command()
@click.argument("urls", metavar="[URL]...", nargs=-1)
@option("--agent", "Look for this product token in robots.txt.", default="Gossamer", show_default=True)
@option("--file file ROBOTS_TXT", "Judge by this file (`-`: standard input), without a request.")
@option(
    "--resolve PATTERN=ADDRESS...", "Ask ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080` (repeatable)."
)
@option(
    "--contact URL_OR_MAIL",
    "Give site owners this URL or mail address as your contact; GOSSAMER_CONTACT sets it too.",
    default="",
)
def robots(urls: tuple[str, ...], agent: str, file: str | None, resolve: tuple[str, ...], contact: str) -> int:
    """Show for each URL whether robots.txt allows it, and by which rule.

    It prints a line for each URL: allowed or denied, the URL, and the rule with its line number, separated by tabs.
    Without URLs, or with `-`, it reads them from standard input, one a line.

    With --file, URLs are compared byte for byte as they are written, as Google's parser does. Without --file, each
    host's robots.txt is fetched once, and URLs are brought to their canonical form first, as in a crawl. Hosts beyond
    this machine are asked only with a contact.

    Exit status: 0 all went well, 2 wrong usage, 4 a robots.txt could not be fetched.
    """
    from gossamer.frontier.robots.rules import MAX_BYTES, PathForm, parse

    if file == "-" and (not urls or "-" in urls):
        raise click.UsageError("standard input cannot be both the robots.txt and the list of URLs")
    if file is not None:
        rules = parse(given_bytes(file, most=MAX_BYTES), PathForm.BYTES)
        for url in given_urls(urls):
            _tell(url, rules.decide(agent, url))
        return 0
    if not agent:
        raise click.UsageError("--agent: give the product token that robots.txt may name, as Gossamer")
    from gossamer.analysis.inspecting import RobotsAsking
    from gossamer.crawls.identity import contact_of
    from gossamer.crawls.options import CrawlOptions

    with coroutine_runner() as runner:
        return runner.run(
            _ask(RobotsAsking(agent, resolve, contact_of(CrawlOptions(contact=contact))), given_urls(urls))
        )


def _tell(url: str, decision: "Decision") -> None:
    rule = f"{decision.rule} (line {decision.line})" if decision.line else decision.rule or "no rule"
    print("allowed" if decision.allowed else "denied", shown(url), shown(rule), sep="\t")


async def _ask(asking: "RobotsAsking", urls: Iterable[str]) -> int:
    from gossamer.analysis.inspecting import url_of_site
    from gossamer.frontier.robots.contract import RobotsRuling
    from gossamer.frontier.robots.rules import Decision

    status = 0
    async with asking:
        for text in urls:
            try:
                url = url_of_site(text)
                verdict = await asking.judge(url)
            except UsageError as error:
                tell(str(error))
                status = 2
                continue
            # While a robots.txt cannot be had, nothing of the site is fetched.
            _tell(url, Decision(verdict.ruling is RobotsRuling.ALLOWED, verdict.rule, verdict.line))
            if verdict.ruling is RobotsRuling.WAIT:
                status = status or 4
    return status


# `gossamer check-filter`: does this expression let these URLs pass, and which part of it decides? The command line's door to
# :mod:`gossamer.expressions`, without a crawl.

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
    """The facts of a whole page for a gate: of the file, or of an empty page. An option that was given counts more than the file.
    Raises UsageError: the file cannot be read, or a field has no colon."""
    import msgspec

    from gossamer.documents.document import Document
    from gossamer.expressions.compiling import facts_of
    from gossamer.values.body import MAX_READ
    from gossamer.values.media_type import HTML_TYPES
    from gossamer.values.outcome import Outcome
    from gossamer.values.task import Task
    from gossamer.values.visit import Response, Visit

    body = given_bytes(str(page), most=MAX_READ) if page else b""
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
    from gossamer.engine.errors import SettingError
    from gossamer.expressions.compiling import READS, Expression, explain
    from gossamer.parsing.filters import split_gate
    from gossamer.values.url import canonical

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
