"""Bundle another version of schema.org's JSON-LD context: `schema-org FILE VERSION`.

FILE is the `schemaorgcontext.jsonld` of a release, which schema.org keeps in the folder `data/releases/VERSION` of its repository.
What the crawler needs of it is written to `src/gossamer/rdf/schema_org_terms.py`: no crawl reads the file itself.
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from tools import ROOT

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


def main(arguments: list[str]) -> int:
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
