"""What can be asked of a running crawl, and what it answers: a closed list, in JSON, each message with its length before it.

A request names no code, no class, no file and no environment: only what stands here, with fields of these types. A field
that is not known is refused. Lengths are checked before anything is allocated (FAULTS 113).
"""

from typing import Annotated, Any

import msgspec

#: Bytes of a request at most: a block list of some 40,000 names.
MAX_REQUEST = 1 << 20

#: Bytes of an answer at most; the server cuts its lists long before.
MAX_ANSWER = 1 << 24

#: Bytes before each message: its length, the highest byte first.
HEADER = 4

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    """Base of what can be asked."""


class Status(Request, frozen=True, tag="status"):
    """How does it stand?"""

    units: bool = False
    """Also what every unit has counted, and what every connector did."""


class Pause(Request, frozen=True, tag="pause"):
    """Hand out no more until :class:`Continue`; what is in flight is finished."""


class Continue(Request, frozen=True, tag="continue"):
    """Hand out again."""


class Stop(Request, frozen=True, tag="stop"):
    """End, as Ctrl-C does; the crawl can be resumed."""

    now: bool = False
    """Do not wait for what is in flight, as a second Ctrl-C."""


class Checkpoint(Request, frozen=True, tag="checkpoint"):
    """Keep the present state under a name."""

    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """Empty: the time is its name."""


class Checkpoints(Request, frozen=True, tag="checkpoints"):
    """Which checkpoints are there?"""


class Change(Request, frozen=True, tag="set"):
    """Change settings, by `UNIT.SETTING` or by the name of an option; all of them, or none."""

    values: Annotated[dict[Text, str], msgspec.Meta(min_length=1, max_length=100)]


class Block(Request, frozen=True, tag="block"):
    """Ask these hosts, and all hosts below these domains, for nothing any more."""

    names: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=50_000)]


class Decide(Request, frozen=True, tag="decide"):
    """Take a person's word for what is a trap, and what is none."""

    confirm: Annotated[list[Name], msgspec.Meta(max_length=1_000)] = []
    """Identifiers of families that are traps."""
    release: Annotated[list[Name], msgspec.Meta(max_length=1_000)] = []
    """Those of families that are none; `all` for every one."""


class Why(Request, frozen=True, tag="why"):
    """What does the crawl know of this URL?"""

    url: Text


Asked = Status | Pause | Continue | Stop | Checkpoint | Checkpoints | Change | Block | Decide | Why


class Answer(msgspec.Struct, frozen=True, tag_field="is"):
    """Base of what is answered."""


class Done(Answer, frozen=True, tag="done"):
    """It was done; in words for a person."""

    text: str


class Listed(Answer, frozen=True, tag="listed"):
    """Names that were asked for."""

    names: list[str]


class Told(Answer, frozen=True, tag="told"):
    """What was asked for, as JSON that the asker knows the form of."""

    value: msgspec.Raw


class Refused(Answer, frozen=True, tag="refused"):
    """It was not done, and nothing has changed."""

    text: str
    exit_code: int = 2


Answered = Done | Listed | Told | Refused

_requests = msgspec.json.Decoder(Asked)
_answers = msgspec.json.Decoder(Answered)


class Malformed(ValueError):
    """A message that is none of ours. The connection is dropped."""


def encode(message: Request | Answer) -> bytes:
    """A message with its length before it."""
    body = msgspec.json.encode(message)
    return len(body).to_bytes(HEADER) + body


def read_length(header: bytes, limit: int) -> int:
    """The length of the message that follows.

    Raises:
        Malformed: it is longer than `limit`, or empty.
    """
    length = int.from_bytes(header)
    if not 0 < length <= limit:
        raise Malformed(f"a message of {length} bytes; at most {limit} are taken")
    return length


def read_request(body: bytes) -> Asked:
    """A request from its bytes.

    Raises:
        Malformed: it is none; says what is wrong.
    """
    request: Asked = _decoded(_requests, body)
    return request


def read_answer(body: bytes) -> Answered:
    """An answer from its bytes.

    Raises:
        Malformed: it is none; says what is wrong.
    """
    answer: Answered = _decoded(_answers, body)
    return answer


def _decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a message of this protocol: {error}") from None
