"""`gossamer fetch`: one fetch as a crawl would make it, told in full; and `gossamer inspect`.

Place in the flow: the command line's door to the protocol modules, beside `crawl`. `inspect` and `gossamer rdf` take their
documents from here: a URL, a file, or standard input.
"""

import contextlib
import mimetypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gossamer.cli.helping import option
from gossamer.cli.options import options_named, read_options
from gossamer.cli.saying import canonical_base, say_bytes, say_json, shown, tell
from gossamer.crawls.machine import coroutine_runner
from gossamer.engine.errors import refusing
from gossamer.engine.sheet import show_bytes
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.options import CrawlOptions
    from gossamer.values.visit import Response

#: The options of a crawl that a single fetch has, too.
OPTIONS = (
    *("contact", "user_agent", "header", "header_for", "auth", "proxy", "http2", "ca_file"),
    *("resolve", "allow_network", "max_page_size"),
)


@click.command()
@click.argument("url")
@option("--body", "Write the document to standard output, and everything else to standard error.")
@option("--json as_json", "Print one line of JSON, with `body` as text if --body is given.")
@options_named(OPTIONS)
def fetch(url: str, body: bool, as_json: bool, **given: Any) -> int:
    """Fetch one URL, and show outcome, timings and header fields.

    The request is the one that a crawl with this seed would send, with the same guard, deadlines and caps. A redirect
    is shown and not followed, and robots.txt is not asked for.

    Exit status: 0 an answer came, whatever its status code, 2 wrong usage, 4 no answer came.
    """
    with coroutine_runner() as runner:
        url, response = runner.run(fetched(url, read_options(given, None)))
    if as_json:
        say_json(_report(url, response, with_body=body))
    else:
        _tell(url, response, to_error=body)
        if body:
            from gossamer.values import body as bodies

            say_bytes(bodies.pieces(response.document))
    return 0 if response.headers or response.response_head else 4


def _report(url: str, response: "Response", *, with_body: bool) -> dict[str, Any]:
    """The output of `--json`; of the second half, the values that there are."""
    from gossamer.values.body import sha1_base32, sha256

    report: dict[str, Any] = {
        "url": url,
        "outcome": response.outcome,
        "error": response.error,  # empty where nothing failed
        "status": response.status,
        "address": response.address,
        "protocol": response.version,  # as spoken: the head of an answer over HTTP/2 is shown as one of 1.1
        "mime": response.mime,
        "bytes": len(response.body),  # as sent, without chunk framing
        "headers": response.headers,
        "timings": response.timings,
    }
    body = response.body
    more = {
        "document_bytes": len(response.document),  # without content coding
        "sha1": sha1_base32(body) if body else "",
        "sha256": sha256(body) if body else "",
        "truncated": response.cut,
        "notes": list(response.notes),  # what was read although its standard does not allow it
    }
    report |= {name: value for name, value in more.items() if value}
    if with_body:
        from gossamer.documents.charset import sniff, to_utf8

        content = response.content
        report["body"] = to_utf8(content, sniff(content, response.content_type)).decode("utf-8", "replace")
    return report


def _tell(url: str, response: "Response", *, to_error: bool) -> None:
    out = sys.stderr if to_error else sys.stdout
    status = f" {response.status}" if response.status else ""
    print(f"{response.outcome}{status} {shown(url)}", file=out)
    # The milliseconds at which each phase was over; those that there were.
    phases = {name: getattr(response.timings, name, 0.0) for name in ("dns", "connect", "tls", "first_byte", "total")}
    times = [f"{name.replace('_', ' ')} {seconds * 1000:.1f} ms" for name, seconds in phases.items() if seconds > 0]
    coded = f", {show_bytes(len(response.document))} decoded" if response.decoded is not None else ""
    cut = f", cut ({response.cut})" if response.cut else ""
    rows = {
        "reason": shown(response.error),
        "noted": ", ".join(response.notes),
        "address": response.address,
        "protocol": response.version,
        "times": ", ".join(times),
        "body": f"{show_bytes(len(response.body))}{coded}{cut}" if response.body else "",
    }
    for name, text in rows.items():
        if text:
            print(f"{name:<8} {text}", file=out)
    if response.response_head:
        print(file=out)
        for line in response.response_head.decode("latin-1").split("\r\n"):
            if line:
                print(shown(line), file=out)


# `gossamer inspect`: what a crawl would see in a document, as one line of JSON. The command line's door to the process and link
# stages, beside `crawl`.


@click.command()
@click.argument("documents", metavar="URL|FILE...", nargs=-1, required=True)
@option("--base URL", "Resolve the links of files against this URL.", default="")
@option("--content-type TYPE", "Treat files as this media type, as if a server had said so.", default="")
@option(
    "--page-requisites",
    "Also list the style sheets, images and other files that a browser would fetch to show the page.",
)
@option(
    "--markdown", "Write the main part of the documents as Markdown instead; this needs the package html-to-markdown."
)
@options_named(OPTIONS)
def inspect(
    documents: tuple[str, ...], base: str, content_type: str, page_requisites: bool, markdown: bool, **given: Any
) -> int:
    """Show what a crawl would see in documents: one line of JSON for each.

    URLs are fetched as a crawl with this seed would fetch them; redirects are shown, not followed. `-` reads standard
    input: a document, or URLs, one a line.

    The line has the media type (judged by the bytes), charset, title, language, robots tags, canonical URL, links (url,
    relation, anchor, nofollow), length of the text, fingerprints and structured data.

    Exit status: 0 all went well, 2 wrong usage, 4 a URL gave no answer.
    """
    options = read_options(given, None)
    if base:
        base = canonical_base(base)
    with coroutine_runner() as runner:
        return runner.run(_inspect(documents, base, content_type, page_requisites, markdown, options))


async def _inspect(
    documents: tuple[str, ...], base: str, content_type: str, requisites: bool, markdown: bool, options: "CrawlOptions"
) -> int:
    import asyncio

    from gossamer.analysis.inspecting import Inspecting
    from gossamer.crawls.identity import token_of, user_agent

    status = 0
    async with Inspecting(token_of(user_agent(options)), requisites=requisites) as inspecting:
        for name, content in _given(documents, content_type):
            try:
                if content is None and "://" in name:
                    url, response = await fetched(name, options)
                    status = status if response.headers or response.response_head else 4
                    if markdown:
                        await asyncio.to_thread(_say_markdown, url, response)
                        continue
                    seen = await inspecting.inspect(url, response)
                else:
                    url, response = read(name, content, content_type)
                    if markdown:
                        await asyncio.to_thread(_say_markdown, base or url, response)
                        continue
                    seen = await inspecting.inspect(base if content is not None and base else url, response, base)
            except UsageError as error:
                tell(str(error))
                status = 2
                continue
            say_json(seen)
    return status


def _say_markdown(url: str, response: "Response") -> None:
    from gossamer.words.reading import TROUBLES, words_of_answer

    if not response.body:
        why = "it is empty" if response.outcome == "ok" else response.error or response.outcome
        raise UsageError(f"{url} brought no document: {why}")
    words = words_of_answer(url, response)
    if words.trouble:
        tell(f"{url}: {TROUBLES[words.trouble]}")
    sys.stdout.write(words.markdown)


def _given(documents: tuple[str, ...], content_type: str) -> Iterator[tuple[str, bytes | None]]:
    """URLs and names of files, or a name with the document itself."""
    from gossamer.analysis.inspecting import looks_like_urls

    for name in documents:
        if name != "-":
            yield name, None
            continue
        content = sys.stdin.buffer.read()
        if not content_type and looks_like_urls(content):
            yield from ((line.decode(), None) for line in content.split())
        else:
            yield NAMELESS, content


#: Name of a document that came by standard input, where no base was given.
NAMELESS = "about:blank"


async def fetched(text: str, options: "CrawlOptions") -> "tuple[str, Response]":
    """The canonical form of a URL, and the answer to one request for it: with the options, guard and limits of a crawl with that
    seed, but robots.txt is not asked for. Raises UsageError: it is no URL, nothing serves its scheme, or its address may not be
    asked; says what would open it."""
    import msgspec

    from gossamer.crawls.builder import served
    from gossamer.crawls.catalog import catalog
    from gossamer.crawls.compiling import compile_wiring
    from gossamer.crawls.plan import check_schemes, read_seeds, users_of
    from gossamer.engine.graph import providers_of
    from gossamer.engine.planning import plan
    from gossamer.engine.wiring import with_settings
    from gossamer.values.outcome import Outcome
    from gossamer.values.task import Task
    from gossamer.values.url import host_of, scheme_of

    [url] = read_seeds([text])
    wiring = compile_wiring([url], msgspec.structs.replace(options, auth=(*users_of([text]), *options.auth)))
    for name, node in wiring.providers.items():
        if node.use in ("http", "ftp", "gopher"):
            wiring = with_settings(wiring, name, {"timings": True})
    graph = plan(wiring, catalog())
    check_schemes([url], graph)
    module = served(graph.wiring)[scheme_of(url)]
    units: dict[str, Any] = {**providers_of(graph, [module])}
    async with contextlib.AsyncExitStack() as stack:
        for unit in units.values():
            await unit.start()
            stack.push_async_callback(unit.stop)
        response: Response = await units[module].fetch(Task(url, host_of(url)))
    if response.outcome is Outcome.ADDRESS_REFUSED and response.error.endswith("off loopback"):
        raise UsageError(
            f"{url}: requests beyond this machine have to name a contact for site owners: give --contact URL_OR_MAIL, or set "
            "GOSSAMER_CONTACT"
        )
    return url, response


def read(name: str, content: bytes | None, content_type: str) -> "tuple[str, Response]":
    """A file, or what came by standard input, as an answer. Raises UsageError: the file cannot be read."""
    from gossamer.analysis.inspecting import answer_of

    if content_type and "/" not in content_type:
        raise UsageError(
            f"--content-type {content_type}: write it as text/html or application/pdf; charset=... may follow"
        )
    if content is not None:
        return name, answer_of(content, content_type)
    path = Path(name)
    hint = "" if path.exists() else "; a URL begins with http:// or https://"
    with refusing(UsageError, f"{name} cannot be read", hint):
        content = path.read_bytes()
    return path.resolve().as_uri(), answer_of(content, content_type or mimetypes.guess_type(name)[0] or "")
