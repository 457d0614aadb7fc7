"""The JSON-LD context of schema.org, as far as it says anything: every other term is its own name behind :data:`VOCABULARY`.

The terms are those of one version, which :mod:`~gossamer.rdf.schema_org_terms` names; `./gossamer dev schema-org` takes another.
"""

import re

from gossamer.rdf.schema_org_terms import ALIASES, PREFIXES, TYPED, VERSION

__all__ = ["ALIASES", "COERCED", "NAME", "PREFIXES", "VERSION", "VOCABULARY"]

VOCABULARY = "http://schema.org/"

#: How pages name the context.
NAME = re.compile(
    r"https?://(?:www\.)?schema\.org(?:/(?:docs/jsonldcontext\.json(?:ld)?|version/[^/]+/schemaorgcontext\.jsonld)?)?#?",
    re.IGNORECASE,
)

#: Term -> the datatype of its strings, `@id` for links.
COERCED = {term: kind for kind, terms in TYPED.items() for term in terms.split()}
