"""Two requests for one URL at once: each ends its own flight."""

from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.testing.clock import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Disposition, Task
from gossamer.values.visit import Response, answer_of


def test_an_answer_ends_the_flight_of_its_own_request_though_another_asks_the_same_url() -> None:
    politeness = HostPoliteness(PolitenessSheet(per_host=2, delay=0.0, domain_delay=0.0, ip_delay=0.0))
    politeness.clock = FakeClock()
    plain = Task("http://a.test/form", "a.test")
    posted = Task("http://a.test/form", "a.test", request=requested("POST", b"x"), attempt=9)
    politeness.begin(plain, "", 0.0)
    politeness.begin(posted, "", 60.0)
    failed, fine = Response(Outcome.TIMED_OUT, is_met=True), Response(Outcome.OK, status=200)
    politeness.answered(answer_of(posted, failed))
    politeness.answered(answer_of(plain, fine))
    assert politeness.ruling(answer_of(plain, fine)).what is Disposition.DONE
    assert politeness.ruling(answer_of(posted, failed)).what is Disposition.GONE, "its tries are its own"
    assert politeness.metrics.snapshot()["in_flight"] == 0
