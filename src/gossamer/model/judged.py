"""Tasks that come from another process, another machine or a file: they are judged here before anything of them is kept.

Place in the flow: exchange files (:mod:`gossamer.stores.exchange.sealed`) and what other agents send to agents
(:mod:`gossamer.stages.commit.receiving`) and masters (:mod:`gossamer.stages.marshaling.steps`) pass here when they are decoded.
The decoder has made sure of the types. The rest of the program takes for granted what holds for every task that it makes itself: a
canonical URL, the URL's own host, and numbers that fit into keys and tables. A task that breaks this would stop the crawl each time
it is read.
"""

import re

from gossamer.model.digest_claims import CLAIM
from gossamer.model.errors import UsageError
from gossamer.model.orders import ORDER
from gossamer.model.requesting import MAX_NAME, requested
from gossamer.model.task import LAST_LEVEL, Task
from gossamer.model.url import MAX_URL_BYTES, fault_of_url

#: The greatest depth and number of attempts: far beyond any crawl, and a column of 32 bits has room for what follows it.
MOST = 1 << 30

#: Characters of a validator (RFC 9110, 8.8): as long as a field of a request may be.
MOST_VALIDATOR = 8_192

#: The greatest number of redirects in a row that a task may have behind it; no setting allows so many.
_MOST_HOPS = 1_000

#: Characters of a request's mark: its method, the digest of its body and the longest key have half of them.
_MOST_MARK = 2 * MAX_NAME

#: Characters that would end a header field, and those that nobody could read in a line about it.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def fault_of(task: Task) -> str:
    """Why a task from elsewhere cannot be kept, in words that follow its URL; empty where it can.

    Orders and claims travel as tasks without a URL: whoever takes them judges them.
    """
    if task.relation not in (ORDER, CLAIM) and (fault := fault_of_url(task.url, task.host)):
        return fault
    return fault_beside_url(task)


def fault_beside_url(task: Task) -> str:
    """Why a task from elsewhere cannot be kept whose URL is sound; empty where it can."""
    for name, number, least, most in (
        ("depth", task.depth, 0, MOST),
        ("attempt", task.attempt, 1, MOST),
        ("level", task.level, 0, LAST_LEVEL),
        ("number of redirects", task.hops, 0, _MOST_HOPS),
    ):
        if not least <= number <= most:
            return f"its {name} is not from {least} to {most:,}"
    for name, text, longest in (
        ("source", task.source, 2 * MAX_URL_BYTES),
        ("relation", task.relation, MAX_NAME),
        ("entity tag", task.etag, MOST_VALIDATOR),
        ("date", task.last_modified, MOST_VALIDATOR),
    ):
        if len(text) > longest or _CONTROLS.search(text):
            return f"its {name} is too long, or has control characters"
    return _fault_of_request(task)


def named(task: Task) -> str:
    """The task's URL as a line about it may show it."""
    return repr(task.url[:200])


def _fault_of_request(task: Task) -> str:
    told = task.request
    if told is None:
        return ""
    try:
        made = requested(
            told.method,
            told.body,
            told.headers,
            told.label,
            told.data,
            is_safe=told.is_safe,
            priority=told.priority,
            redirects=told.redirects,
            session=told.session,
        )
    except UsageError as error:
        return str(error)
    if made.mark and not told.mark:
        return "its request is no plain GET, and has no mark"
    if len(told.mark) > _MOST_MARK or not told.mark.isprintable():
        return "the mark of its request is too long, or has control characters"
    way = () if told.way is None else told.way.asked
    if len(way) > _MOST_HOPS or any(len(url) > MAX_URL_BYTES or len(cookies) > _MOST_MARK for url, cookies in way):
        return "the redirects that led to it are more, or longer, than any crawl follows"
    return ""
