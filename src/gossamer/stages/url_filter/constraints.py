"""Filter by domain constraints (Hunyadi 2007, section 5.3.2): `--only` and `--never`.

Place in the flow: links ─► **filter** ─► URL-seen; the frontier may ask it for tasks, too, seeds among them. How a
constraint is written: :mod:`gossamer.expressions.constraints`.
"""

from collections.abc import Sequence
from typing import Annotated

from gossamer.contracts.filtering import TaskGate
from gossamer.expressions.constraints import DomainConstraint
from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task
from gossamer.model.url import authority_of, host_of
from gossamer.model.visit import Link

#: Hosts whose verdict is remembered at once; then all are forgotten, which costs each one more look.
REMEMBERED_HOSTS = 65_536


class ConstraintSheet(Sheet, frozen=True):
    """Settings of :class:`ConstraintFilter`."""

    only: Annotated[
        tuple[str, ...],
        setting("If not empty, let only hosts pass that match one of these domain constraints, as `hu.bme.*`."),
    ] = ()
    never: Annotated[
        tuple[str, ...], setting("Refuse hosts that match one of these domain constraints; this wins over `only`.")
    ] = ()


class ConstraintFilter(Provider[ConstraintSheet]):
    """Refuses hosts by domain constraint (`never`, `only`). Contracts: `filtering.UrlFilter`, `filtering.TaskFilter`.

    Raises:
        SettingError: a constraint cannot be read.
    """

    def __init__(self, sheet: ConstraintSheet | None = None) -> None:
        super().__init__(sheet)
        self._read()

    def changed(self, before: ConstraintSheet) -> None:
        """Take the new constraints, or keep the old ones if a new one is bad."""
        self._read()

    def _read(self) -> None:
        try:
            only = [DomainConstraint(one) for one in self.sheet.only]
            never = [DomainConstraint(one) for one in self.sheet.never]
        except ValueError as error:
            raise SettingError(str(error)) from None
        self._only, self._never = only, never
        self._verdicts: dict[str, str] = {}

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`never` or `only` for each link that is refused."""
        if not (self._only or self._never):
            return [""] * len(links)
        return [self._judge(link.url) for link in links]

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """The same of tasks."""
        if not (self._only or self._never):
            return [""] * len(tasks)
        # Under most hosts' names stands what was judged by their authority, which is the same.
        known = self._verdicts.get
        return [self._judge(task.url) if (verdict := known(task.host)) is None else verdict for task in tasks]

    def _judge(self, url: str) -> str:
        authority = authority_of(url) or host_of(url)
        verdict = self._verdicts.get(authority)
        if verdict is None:
            if len(self._verdicts) >= REMEMBERED_HOSTS:
                self._verdicts.clear()
            verdict = self._verdicts[authority] = self._judge_host(host_of(url))
        return verdict

    def _judge_host(self, host: str) -> str:
        if any(one.holds(host) for one in self._never):
            return "never"
        return "only" if self._only and not any(one.holds(host) for one in self._only) else ""
