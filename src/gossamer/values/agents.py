"""Agents as values, and everything that one of them gets from another: claims of documents, and tasks.

Place in the flow: supervisor, designation and agents share the values. An agent that keeps a document which it did not know
claims it at the agent that has the document's digest (:mod:`gossamer.agents.digests`); a digest belongs to an agent as a
host does, under a name that no host can have.

Promise: a task that comes from another process, another machine or a file (:mod:`gossamer.storage.mailbox.sealed_files`,
:mod:`gossamer.agents.url_exchange`, :mod:`gossamer.agents.marshaler`) is judged here before anything of it is kept. The decoder has
made sure of its types; the rest of the program takes for granted a canonical URL, the URL's own host, and numbers that fit into
keys and tables. A task that breaks this would stop the crawl each time it is read.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import product

import msgspec

from gossamer.values.errors import UsageError
from gossamer.values.hosts import domain_point
from gossamer.values.items import UnwritableItem, plain
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.outcome import Outcome
from gossamer.values.patterns import lazy_pattern
from gossamer.values.request import unpacked as unpacked_data
from gossamer.values.request_identity import MAX_NAME, requested
from gossamer.values.task import ANNOUNCED, LAST_LEVEL, ROBOTS, Task
from gossamer.values.url import MAX_URL_BYTES, fault_of_url
from gossamer.values.visit import ORDER, Visit

# -- agents: number, capacity, place

#: The form of an agent's name, which stands in the names of folders and files.
AGENT_NAME = r"[a-z0-9-]{1,32}"

#: `agent-03`, `agent-03=2.5`, `agent-03=2.5@budapest` or `agent-03@budapest`.
_MEMBER = lazy_pattern(rf"(?P<agent>{AGENT_NAME})(=(?P<capacity>\d{{1,2}}(\.\d{{1,3}})?))?(@(?P<place>\S{{1,64}}))?")


class Member(msgspec.Struct, frozen=True):
    """One agent, as designation sees it."""

    agent: str
    capacity: float = 1.0
    """How much of the web it gets, compared with the others; 0 of one that has left, whose files are still there."""
    place: str = ""
    """Its place; empty where it is not known."""

    def __str__(self) -> str:
        capacity = "" if self.capacity == 1.0 else f"={self.capacity:g}"
        return f"{self.agent}{capacity}{self.place and '@'}{self.place}"


class Designated(msgspec.Struct, frozen=True, gc=False):
    """A task and the agent that it goes to."""

    agent: str
    task: Task


def at_work(members: Iterable[str]) -> tuple[str, ...]:
    """The names of those members that have not left, in order. Raises as :func:`member`."""
    return tuple(one.agent for one in map(member, members) if one.capacity)


def agent_name(number: int) -> str:
    """The name of the agent with this number, counted from 0."""
    return f"agent-{number:02d}"


def member(text: str) -> Member:
    """The member that a setting names: `AGENT`, `AGENT=CAPACITY`, `AGENT@PLACE` or `AGENT=CAPACITY@PLACE`. Raises UsageError:
    it is none of these, or the capacity is above 99.999."""
    match = _MEMBER.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} names no agent; write AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE")
    return Member(match["agent"], float(match["capacity"] or 1.0), match["place"] or "")


#: How a task was found that carries a claim to another agent (:attr:`gossamer.values.task.Task.relation`): no link is of this kind.
CLAIM = "claim"

#: Precedes a claim that travels as a task, in the place of the task's URL.
_CLAIM_SCHEME = "claim:"

#: Characters of a digest that say under which name it lies: 1,024 names, so that each agent has its part of them, and one name has
#: some thousand of ten million digests.
_NAMED_BY = 2

#: Bytes that tell the URLs of one document apart.
_MARK_BYTES = 8

#: Seconds since the epoch that a table of times has room for: about the year 5000.
_LATEST = 1e11

_DIGEST = lazy_pattern(r"[A-Z2-7]{32}")

_encode = msgspec.msgpack.Encoder().encode


class Claim(msgspec.Struct, frozen=True, array_like=True, gc=False, order=False):
    """A document that an agent keeps, and that it did not know."""

    digest: str
    url: str
    met_at: float
    """Seconds since the epoch when the request was sent."""
    copies: int = 0
    """How many other claims of this digest are known; only the first claim of a digest counts them."""

    @property
    def host(self) -> str:
        """The name that the digest lies under. RFC 6761 reserves `invalid`, so no host of the web has it."""
        return _name(self.digest[:_NAMED_BY].lower())

    @property
    def key(self) -> bytes:
        """The key of the first claim."""
        return self.digest.encode("utf-8", "surrogatepass")

    @property
    def copy_key(self) -> bytes:
        """The key of a later claim: it lies behind the first one."""
        return self.key + blake2b(self.url.encode("utf-8", "surrogatepass"), digest_size=_MARK_BYTES).digest()


def _name(beginning: str) -> str:
    return f"digests-{beginning}.invalid"


#: The characters of digests (base32, RFC 4648) in lower case.
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"


@cache
def digest_names() -> dict[int, str]:
    """The names that digests lie under, by their points on the circle of domains.

    They belong to agents by the ring, also where a table gives all other domains to agents: they are no load. A domain that shares
    a point with one of them has its agent, since what lies at one point moves as a whole.
    """
    names = (_name("".join(two)) for two in product(_CHARACTERS, repeat=_NAMED_BY))
    return {domain_point(name): name for name in names}


def packed(claim: Claim) -> bytes:
    """The claim as a value of a space."""
    return _encode(claim)


#: The claim that a value of a space holds.
unpacked = msgspec.msgpack.Decoder(Claim).decode


def claim_of(visit: Visit) -> Claim | None:
    """The claim that an agent makes with a visit; None where it has no document, or one that the agent knows."""
    response = visit.response
    is_new = response.outcome is Outcome.OK and bool(response.body) and not visit.duplicate_of
    if not is_new or not visit.digest or visit.task.is_marked or visit.again is not None:
        return None
    return Claim(visit.digest, visit.url, response.started)


def claim_of_row(row: DocumentRow) -> Claim | None:
    """The claim of a visit that the agent has committed; None as for :func:`claim_of`."""
    if row.outcome is not Outcome.OK or not row.bytes or row.duplicate_of or row.mark or not row.digest:
        return None
    return Claim(row.digest, row.url, row.fetched_at)


def as_task(claim: Claim) -> Task:
    """The claim as it travels to another agent."""
    return Task(_CLAIM_SCHEME + msgspec.json.encode(claim).decode(), claim.host, relation=CLAIM)


def claimed_by(task: Task) -> Claim | None:
    """The claim that a task carries; None where it carries none that can be kept: an agent of another version may have sent it."""
    try:
        claim = msgspec.json.decode(task.url.removeprefix(_CLAIM_SCHEME), type=Claim)
    except (ValueError, RecursionError):
        return None
    is_sound = (
        claim.host == task.host
        and _DIGEST.fullmatch(claim.digest) is not None
        and not fault_of_url(claim.url)
        and 0 <= claim.met_at <= _LATEST
        and not claim.copies
    )
    return claim if is_sound else None


# -- tasks from elsewhere

#: The greatest depth and number of attempts: far beyond any crawl, and a column of 32 bits has room for what follows it.
MOST = 1 << 30

#: Characters of a validator (RFC 9110, 8.8): as long as a field of a request may be.
MOST_VALIDATOR = 8_192

#: The greatest number of redirects in a row that a task may have behind it; no setting allows so many.
_MOST_HOPS = 1_000

#: Characters of a request's mark: its method, the digest of its body and the longest key have half of them.
_MOST_MARK = 2 * MAX_NAME

#: Characters that would end a header field, and those that are unreadable in a line about it.
_CONTROLS = lazy_pattern(r"[\x00-\x1f\x7f\ud800-\udfff]")


def fault_of(task: Task) -> str:
    """The reason why a task from elsewhere cannot be kept, in words that follow its URL; empty where it can.

    Orders and claims travel as tasks without a URL: their recipient judges them.
    """
    if task.relation not in (ORDER, CLAIM) and (fault := fault_of_url(task.url, task.host)):
        return fault
    return fault_beside_url(task)


def fault_beside_url(task: Task) -> str:
    """Why a task from elsewhere cannot be kept whose URL is sound; empty where it can."""
    fault = _fault_of_numbers(task.depth, task.attempt, task.level, task.hops)
    fault = fault or _fault_of_texts(task.relation, task.etag, task.last_modified)
    if fault:
        return fault
    if task.source and (fault := fault_of_url(task.source)):
        return f"the URL that it was found on: {fault}"
    if task.relation in (ROBOTS, ANNOUNCED) or task.is_want:
        return f"its relation {task.relation!r} is for what an agent asks for by itself"
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
            actions=told.actions,
        )
        plain(unpacked_data(told.data), "data")
    except (UsageError, UnwritableItem, ValueError, RecursionError) as error:
        return str(error)
    if made.mark and not told.mark:
        return "its request is no plain GET, and has no mark"
    if len(told.mark) > _MOST_MARK or not told.mark.isprintable():
        return "the mark of its request is too long, or has control characters"
    way = () if told.way is None else told.way.asked
    if len(way) > _MOST_HOPS or any(len(url) > MAX_URL_BYTES or len(cookies) > _MOST_MARK for url, cookies in way):
        return "the redirects that led to it are more, or longer, than any crawl follows"
    return ""


# Nearly all tasks have the same few numbers and texts.


@lru_cache(maxsize=256)
def _fault_of_numbers(depth: int, attempt: int, level: int, hops: int) -> str:
    for name, number, least, most in (
        ("depth", depth, 0, MOST),
        ("attempt", attempt, 1, MOST),
        ("level", level, 0, LAST_LEVEL),
        ("number of redirects", hops, 0, _MOST_HOPS),
    ):
        if not least <= number <= most:
            return f"its {name} is not from {least} to {most:,}"
    return ""


@lru_cache(maxsize=256)
def _fault_of_texts(relation: str, etag: str, last_modified: str) -> str:
    for name, text, longest in (
        ("relation", relation, MAX_NAME),
        ("entity tag", etag, MOST_VALIDATOR),
        ("date", last_modified, MOST_VALIDATOR),
    ):
        if len(text) > longest or _CONTROLS.search(text):
            return f"its {name} is too long, or has control characters"
    return ""


def named(task: Task) -> str:
    """The task's URL as a line about it may show it."""
    return repr(task.url[:200])
