"""The gate `body`: a body that nobody wants is refused when its head is known, not when it has come.

Place in the flow: the protocol module for http asks here with the head of each answer, before it takes a byte of the body.
"""

from collections.abc import Sequence

from gossamer.contracts.filtering import VisitFilter, refusal
from gossamer.flow.metrics import Metrics
from gossamer.model.mime import says_nothing
from gossamer.model.outcome import Outcome, of_status
from gossamer.model.task import Task
from gossamer.model.visit import Response, Visit
from gossamer.stages.fetch.head import Head
from gossamer.stages.fetch.transfer import Cut


def unwanted(gates: Sequence[VisitFilter], task: Task, metrics: Metrics, head: Head) -> Cut | None:
    """The verdict on a body that a filter refuses by its head; None where it is to be fetched.

    A head that does not say what kind of document follows is not judged: its bytes may show one that is wanted.
    """
    response = Response(of_status(head.status), head.status, headers=head.fields)
    if says_nothing(response.mime):
        return None
    rule = refusal(gates, "body", Visit(task, response))
    if not rule:
        return None
    length = response.header("content-length")
    metrics.count(f"barred:{rule}")
    if length.isdigit():
        metrics.counters["barred_bytes"] += int(length)
    size = f"{length} bytes" if length else "a body of unknown length"
    return Cut(Outcome.TRUNCATED, f"{rule}: {size} not fetched", "unspecified", rule)
