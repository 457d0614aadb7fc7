"""May this task be asked for at all? Its address, filters of tasks and robots.txt say so, each time before a task goes out.

Place in the flow: the frontier asks for the first task of the host whose turn it is.
"""

from collections.abc import Sequence

from gossamer.contracts.filtering import TaskFilter, verdicts_on
from gossamer.contracts.ledger import Kept
from gossamer.contracts.robots import RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import endpoint_of, site_of
from gossamer.stages.frontier.hosts import FrontierHost

ALLOWED = RobotsVerdict(RobotsRuling.ALLOWED)


def judged(
    host: FrontierHost, task: Task, gates: Sequence[TaskFilter], robots: RobotsGate, ledger: Kept, now: float
) -> tuple[Outcome | None, str, RobotsVerdict]:
    """The outcome of a task that must not be asked for, and why; or None, and what robots.txt says of it.

    What the ledger kept of a site's robots.txt is taken up when it is first needed. `now`: seconds since the epoch. The host
    is one of which it is known where the task's request would go.
    """
    if host.absent:
        return Outcome.DNS_FAILED, host.absent, ALLOWED
    reason = host.ports[endpoint_of(task.url)[1]]
    if reason:
        return Outcome.ADDRESS_REFUSED, reason, ALLOWED
    rule = verdicts_on(gates, "fetch", (task,))[0]
    if rule:
        return Outcome.BLOCKED, rule, ALLOWED
    verdict = robots.judge(task, now)
    if verdict.ruling in (RobotsRuling.FETCH_FIRST, RobotsRuling.WAIT):
        site = site_of(task.url)
        kept = b"" if robots.state(site) else ledger.robots(site, host.name)
        if kept:
            robots.restore(site, kept)
            verdict = robots.judge(task, now)
    if verdict.ruling is RobotsRuling.DENIED:
        return Outcome.ROBOTS_DENIED, rule_text(verdict), verdict
    return None, "", verdict


def rule_text(verdict: RobotsVerdict) -> str:
    """The rule of robots.txt that decided, with its line."""
    return f"{verdict.rule} (robots.txt, line {verdict.line})" if verdict.line else verdict.rule
