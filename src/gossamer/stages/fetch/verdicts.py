"""What the end of a transfer means: our own word first, then libcurl's, then the status of the answer.

Place in the flow: the protocol module for http asks here once for each transfer, and again when its body turned out to be cut
or not decodable.
"""

import pycurl

from gossamer.model.outcome import Outcome, of_status
from gossamer.stages.fetch.endings import ending_of
from gossamer.stages.fetch.transfer import Cut, Transfer


def verdict_on(transfer: Transfer, ending: tuple[int, str]) -> Cut:
    """How it ended: our own word first, then libcurl's, then the status."""
    code, message = ending
    status = transfer.head.status if transfer.head else 0
    if transfer.verdict:
        return beside_status(transfer.verdict, status)
    if status == 206 and not code:
        # No range was asked for: what this is a part of, only the server knows (fault 25).
        return Cut(Outcome.PROTOCOL_FAILED, "the server sent a part of the document, which was not asked for")
    if not code:
        return Cut(of_status(status), "" if status else "the server closed the connection before the end of the head")
    message = message or f"libcurl's error {code}"
    meaning = ending_of(code, transfer.curl.getinfo(pycurl.OS_ERRNO), message)
    if not status:
        return Cut(meaning.early, message)
    return beside_status(Cut(meaning.late, message, meaning.cut), status)


def beside_status(verdict: Cut, status: int) -> Cut:
    """A cut body changes the outcome of a success only: a redirect or an error says all it has to say in its head."""
    if verdict.outcome is not Outcome.TRUNCATED or (answered := of_status(status)) is Outcome.OK:
        return verdict
    return Cut(answered, verdict.reason, verdict.cut, verdict.barred)


def decode_failed(verdict: Cut, reason: str, status: int) -> Cut:
    """The same for a body that cannot be decoded; a deadline or a broken protocol weighs more."""
    if of_status(status) is not Outcome.OK or verdict.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return verdict
    return Cut(Outcome.DECODE_FAILED, reason, verdict.cut)
