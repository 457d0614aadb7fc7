"""What is known at which gate: of every kind of thing that is judged, how each fact is read from it."""

from collections.abc import Callable, Mapping
from typing import Any

from gossamer.contracts.filtering import GATES, Gate
from gossamer.expressions.pages import facts_of

Read = Callable[[Any], Any]

_OF_LINK: Mapping[str, Read] = {
    "url": lambda link: link.url,
    "relation": lambda link: link.relation,
    "anchor": lambda link: link.anchor,
    "nofollow": lambda link: link.nofollow,
}

_OF_TASK: Mapping[str, Read] = {
    "url": lambda task: task.url,
    "depth": lambda task: task.depth,
    "relation": lambda task: task.relation,
}

_OF_HEAD: Mapping[str, Read] = {
    "url": lambda visit: visit.task.url,
    "depth": lambda visit: visit.task.depth,
    "relation": lambda visit: visit.task.relation,
    "status": lambda visit: visit.response.status,
    "mime": lambda visit: visit.media_type,
}

_OF_ANSWER: Mapping[str, Read] = {
    **_OF_HEAD,
    "outcome": lambda visit: str(visit.response.outcome),
    "size": lambda visit: len(visit.response.body),
}

_OF_DOCUMENT: Mapping[str, Read] = {
    **_OF_ANSWER,
    "title": lambda visit: visit.title,
    "language": lambda visit: visit.language,
    "headers": lambda visit: visit.response.headers,
    # A filter may have taken some away; the page has them all.
    "links": lambda visit: len(visit.links) + len(visit.refused),
    "text": lambda visit: facts_of(visit).text,
    "keywords": lambda visit: facts_of(visit).keywords,
    "types": lambda visit: facts_of(visit).types,
}

#: Gate -> fact -> how it is read from what is judged there: a `Link` at `follow`, a `Task` or a `Visit` elsewhere. The depth
#: of links is a matter of their page: whoever judges links puts it into the expression first.
READS: Mapping[Gate, Mapping[str, Read]] = {
    "schedule": _OF_TASK,
    "fetch": _OF_TASK,
    "body": _OF_HEAD,
    "parse": _OF_ANSWER,
    "expand": _OF_DOCUMENT,
    "follow": {**_OF_LINK, "depth": lambda _: 0},
    "store": _OF_DOCUMENT,
}


def gates_of(fact: str) -> list[str]:
    """The gates where a fact is known."""
    return [gate for gate in GATES if fact in READS[gate]]
