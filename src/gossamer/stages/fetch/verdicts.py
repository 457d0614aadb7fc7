"""What the end of a transfer means: our own word first, then libcurl's, then the status of the answer.

Place in the flow: the protocol module for http asks here once for each transfer, and again when its body turned out to be cut
or not decodable.
"""

import pycurl

from gossamer.model.outcome import Outcome, of_status
from gossamer.stages.fetch.endings import ending_of
from gossamer.stages.fetch.transfer import Transfer, Verdict


def verdict_on(transfer: Transfer, ending: tuple[int, str]) -> Verdict:
    """How it ended: our own word first, then libcurl's, then the status."""
    code, message = ending
    status = transfer.head.status if transfer.head else 0
    if transfer.verdict:
        return beside_status(transfer.verdict, status)
    if status == 206 and not code:
        # No range was asked for: what this is a part of, only the server knows (fault 25).
        return Verdict(Outcome.PROTOCOL_FAILED, "a part of the document, which was not asked for")
    if not code:
        return Verdict(of_status(status), "" if status else "closed before the end of the head")
    message = message or f"libcurl's error {code}"
    meaning = ending_of(code, transfer.curl.getinfo(pycurl.OS_ERRNO), message)
    if not status:
        return Verdict(meaning.early, message)
    return beside_status(Verdict(meaning.late, message, meaning.cut), status)


def beside_status(verdict: Verdict, status: int) -> Verdict:
    """A cut body changes the outcome of a success only: a redirect or an error says all it has to say in its head."""
    if verdict.outcome is not Outcome.TRUNCATED or (answered := of_status(status)) is Outcome.OK:
        return verdict
    return Verdict(answered, verdict.reason, verdict.cut, verdict.barred)


def decode_failed(verdict: Verdict, reason: str, status: int) -> Verdict:
    """The same for a body that cannot be decoded; a deadline or a broken protocol weighs more."""
    if of_status(status) is not Outcome.OK or verdict.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return verdict
    return Verdict(Outcome.DECODE_FAILED, reason, verdict.cut)
