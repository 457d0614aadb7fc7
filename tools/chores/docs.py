"""Files that are written out of others: docs/reference/, the typed keywords of the API, the list of decisions, the documentation
site, the picture of README.md, and the terms of schema.org.

`schema-org FILE VERSION` bundles another version of them. FILE is the `schemaorgcontext.jsonld` of a release, which schema.org
keeps in the folder `data/releases/VERSION` of its repository.
"""

import html
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from gossamer import __version__
from gossamer.cli.reference import pages
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import properties
from tools import REFERENCE, ROOT


def stale(made: dict[str, str]) -> list[str]:
    """Pages on disk that differ from the code, are missing, or belong to nothing any more."""
    on_disk = {path.relative_to(REFERENCE).as_posix(): path for path in REFERENCE.rglob("*.md")}
    differing = [name for name, text in made.items() if name not in on_disk or on_disk[name].read_text("utf-8") != text]
    return sorted(differing + [name for name in on_disk if name not in made])


def problems() -> list[str]:
    """For `check`: one line for each page that is not fresh."""
    found = [f"docs/reference/{name}" for name in stale(pages())]
    found += [file.relative_to(ROOT).as_posix() for file in stale_files()]
    return [f"{name} is stale; run ./gossamer dev docs" for name in found]


def stale_files() -> dict[Path, str]:
    """The single files that do not say what they are made from says, and what they should say."""
    wanted = {KEYWORDS: keywords(), DECISIONS: decisions()}
    return {file: text for file, text in wanted.items() if not file.exists() or file.read_text("utf-8") != text}


def write(made: dict[str, str]) -> None:
    for file, text in stale_files().items():
        file.write_text(text, encoding="utf-8")
        print(f"wrote {file.relative_to(ROOT)}")
    for name in stale(made):
        path = REFERENCE / name
        if name in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[name], encoding="utf-8")
        else:
            path.unlink()
        print(f"{'wrote' if name in made else 'removed'} {path.relative_to(ROOT)}")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--site"] and len(arguments) == 2:
        return build_site(Path(arguments[1]))
    if arguments not in ([], ["--check"]):
        print("usage: ./gossamer dev docs [--check | --site FOLDER]", file=sys.stderr)
        return 2
    if not arguments:
        write(pages())
        return 0
    found = problems()
    print("\n".join(found) or f"docs/reference is fresh ({len(pages())} pages)")
    return 1 if found else 0


_FOLDER = ROOT / "docs" / "decisions"

#: The file that is written.
DECISIONS = _FOLDER / "README.md"

_DECISIONS_HEAD = """# Decisions

Each of these pages says what one choice was meant to achieve, what was chosen, and what it costs. `./gossamer dev docs` writes
this list.

"""


def decisions() -> str:
    text = _DECISIONS_HEAD
    for path in sorted(_FOLDER.glob("[0-9]*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        text += f"- [{title}]({path.name})\n"
    return text


#: The file that is written.
KEYWORDS = ROOT / "src" / "gossamer" / "api" / "keywords.py"

_KEYWORDS_HEAD = '''\
"""The options of a crawl as typed keywords: `gossamer.crawl(seeds, depth=2)`, `gossamer.Spider(seeds, concurrency=16)`.

Written by `./gossamer dev docs` out of :class:`gossamer.crawls.options.CrawlOptions`: change that, not this. Times, sizes
and rates are numbers (seconds, bytes) or texts with units, as `"10m"` and `"1GB"`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class CrawlKeywords(TypedDict, total=False):
    """The options of a crawl beside its seeds. An option that is left out has its default."""

'''

#: Units whose values people write with a unit of their own.
_MEASURED = ("s", "bytes", "bytes/s", "pages/s")


def keywords() -> str:
    text, indent = _KEYWORDS_HEAD, " " * 4
    for prop in properties(all_options(installed=False)):
        kind = prop.type.replace("tuple[str, ...]", "Sequence[str]").replace("'", '"')
        if prop.unit in _MEASURED:
            first, *rest = kind.split(" | ")
            kind = " | ".join([first, "str", *(one for one in rest if not one.startswith("Literal"))])
        doc = f'"""{prop.doc}"""'
        lines = textwrap.wrap(doc, 120, break_on_hyphens=False, initial_indent=indent, subsequent_indent=indent)
        text += "\n".join([f"    {prop.name}: {kind}", *lines, ""])
    return text


_GO_ON = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={there}">
<title>Gossamer</title>
<p><a href="{there}">{text}</a></p>
{more}</html>
"""


def build_site(folder: Path) -> int:
    """Build this version's pages in FOLDER/VERSION, and the page in FOLDER that leads to it and to the other versions there.

    Returns:
        The exit code of Sphinx: 0 when it found nothing wrong. Warnings count as wrong, a link that leads nowhere among them.
    """
    ours = folder.resolve() / __version__
    line = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-j", "auto"]
    line += ["-c", str(ROOT / "docs"), "-d", str(folder.resolve() / ".built" / __version__), str(ROOT), str(ours)]
    done = subprocess.run(line, env={**os.environ, "GOSSAMER_DOCS_VERSION": __version__}, check=False)
    if done.returncode == 0:
        (ours / "index.html").write_text(_page("docs/index.html", "Documentation"), encoding="utf-8")
        (folder / "index.html").write_text(versions(folder), encoding="utf-8")
        print(f"wrote {folder / 'index.html'}")
    return done.returncode


def versions(folder: Path) -> str:
    """The page of a folder that leads to this version, and to the others that were built there."""
    others = sorted(path.parent.name for path in folder.glob("*/index.html") if path.parent.name != __version__)
    listed = "".join(f'<p><a href="{html.escape(name)}/index.html">{html.escape(name)}</a></p>\n' for name in others)
    return _page(f"{__version__}/docs/index.html", f"Gossamer {__version__}", listed)


def _page(there: str, text: str, more: str = "") -> str:
    return _GO_ON.format(there=html.escape(there), text=html.escape(text), more=more)


#: The picture that README.md shows.
PICTURE = ROOT / "docs" / "images" / "watch.svg"

#: Columns of the terminal, and seconds of the crawl before the look: the plot has some bars by then.
WIDTH, SECONDS = 110, 75

#: A terminal on a dark ground. Nothing in it is loaded from elsewhere.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
 aria-label="The overview of a crawl in a terminal"><style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
 line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style><defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs><rect fill="#16181d" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def drawn(folder: Path) -> str:
    """The overview of the crawl in a folder, as a picture."""
    from rich.console import Console

    from gossamer.analysis.watching import CrawlWatch
    from gossamer.cli.status import overview, past_speeds

    watch = CrawlWatch(folder / "mycrawl")
    console = Console(
        record=True, width=WIDTH, file=(folder / "drawn").open("w", encoding="utf-8"), force_terminal=True
    )
    try:
        now = watch.look()
        for line in overview(now, past_speeds(watch.directory), WIDTH, time.time()):
            console.print(line)
    finally:
        watch.close()
        console.file.close()
    return console.export_svg(code_format=FRAME)


def picture(arguments: list[str]) -> int:
    """Crawl, look, and write the picture."""
    from gossamer.simweb import ServeOptions, SimWeb, WebSpec, beside

    if arguments:
        print("usage: ./gossamer dev picture", file=sys.stderr)
        return 2
    spec = WebSpec(pages=40_000, hosts=400, latency=0.02)
    with tempfile.TemporaryDirectory(prefix="picture-") as name, beside(spec, ServeOptions()) as port:
        line = [str(ROOT / "gossamer"), "crawl", f"http://{SimWeb(spec).hosts.name(0)}/", "--scope", "any", "--quiet"]
        line += ["--resolve", f"*.sim=127.0.0.1:{port}", "--allow-network", "127.0.0.0/8", "-o", "mycrawl"]
        crawl = subprocess.Popen(line, cwd=name)
        try:
            time.sleep(SECONDS)
            picture = drawn(Path(name))
        finally:
            crawl.terminate()
            crawl.wait()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


#: The terms of schema.org's JSON-LD context: what the crawler needs of a file that no crawl reads.
TERMS = ROOT / "src/gossamer/rdf/schema_org_terms.py"
SOURCE = "https://github.com/schemaorg/schemaorg/blob/main/data/releases/{version}/schemaorgcontext.jsonld"
VOCABULARY = "http://schema.org/"


class NotExpressible(ValueError):
    """The context says something for which the bundled form has no place."""


def module_of(context: dict[str, Any], version: str) -> str:
    """The module of terms, as text.

    Args:
        context: what stands under `@context` in the published file.
        version: as schema.org calls it.

    Raises:
        NotExpressible: says which term.
    """
    if context.get("@vocab") != VOCABULARY:
        raise NotExpressible(f"@vocab is not {VOCABULARY}")
    words = {term: value for term, value in context.items() if term != "@vocab"}
    prefixes = {term: iri for term, iri in words.items() if isinstance(iri, str) and not iri.startswith("@")}
    aliases = {term: value for term, value in words.items() if isinstance(value, str) and value.startswith("@")}
    typed: dict[str, list[str]] = {}
    for term, value in words.items():
        if isinstance(value, str):
            continue
        if not isinstance(value, dict) or set(value) - {"@id", "@type"}:
            raise NotExpressible(f"{term} says {json.dumps(value)}")
        iri = _expanded(value.get("@id", term), prefixes)
        if "@type" not in value:
            if iri != VOCABULARY + term:
                aliases[term] = iri
        elif iri == VOCABULARY + term:
            typed.setdefault(_expanded(value["@type"], prefixes), []).append(term)
        else:
            raise NotExpressible(f"{term} has a type, and is not its own name")
    return "\n".join(
        [
            f'"""The terms of version {version} of schema.org\'s JSON-LD context: every one that is more than its own name.',
            "",
            "Made by `./gossamer dev schema-org`; not written by hand.",
            '"""',
            "",
            f'VERSION = "{version}"',
            f'SOURCE = "{SOURCE.format(version=version)}"',
            "",
            "#: Terms that stand for something else.",
            *_written("ALIASES", aliases),
            "",
            *_written("PREFIXES", prefixes),
            "",
            "#: Terms whose strings are links (`@id`) or have a datatype: by that, the terms.",
            "TYPED = {",
            *(
                line
                for kind, terms in sorted(typed.items())
                for line in (f'    "{kind}": """', *textwrap.wrap(" ".join(sorted(terms)), 116), '""",')
            ),
            "}",
            "",
        ]
    )


def _expanded(name: str, prefixes: dict[str, str]) -> str:
    if name.startswith("@"):
        return name
    prefix, colon, rest = name.partition(":")
    return prefixes[prefix] + rest if colon and prefix in prefixes else name if colon else VOCABULARY + name


def _written(name: str, values: dict[str, str]) -> list[str]:
    return [f"{name} = {{", *(f'    "{key}": "{value}",' for key, value in sorted(values.items())), "}"]


def schema_org(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: ./gossamer dev schema-org FILE VERSION", file=sys.stderr)
        return 2
    file, version = arguments
    try:
        context = json.loads(Path(file).read_text(encoding="utf-8"))["@context"]
        text = module_of(context, version)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"gossamer dev schema-org: {file} is no context of schema.org: {error}", file=sys.stderr)
        return 1
    TERMS.write_text(text, encoding="utf-8")
    print(TERMS.relative_to(ROOT))
    return 0
