"""Filter by domain constraints (Hunyadi 2007, section 5.3.2): `--only` and `--never`.

Place in the flow: links ─► **filter** ─► URL-seen; the frontier may ask it for tasks, too, seeds among them. A constraint is
a host name written backwards, from the top-level domain on, compared label by label and without regard to case:

========== ==========================================
`hu.bme`   the host `bme.hu` alone
`hu.bme.+` everything below `bme.hu`, not itself
`hu.bme.*` `bme.hu` and everything below
========== ==========================================
"""

from collections.abc import Sequence
from typing import Annotated

from gossamer.contracts.filtering import TaskGate
from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.errors import UnreadableUrl
from gossamer.model.task import Task
from gossamer.model.url import authority_of, canonical, host_of
from gossamer.model.visit import Link

#: Hosts whose verdict is remembered at once; then all are forgotten, which costs each one more look.
REMEMBERED_HOSTS = 65_536

#: What belongs to a URL and not to a host name, though the parser might make one of it.
_UNFIT = frozenset("/?#@\\%:[] \t\r\n")


class DomainConstraint:
    """One constraint. A label in another script is compared in its ASCII form, as host names are.

    Raises:
        ValueError: it is no host name in reversed notation; says how one is written.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        labels = self.text.lower().rstrip(".").split(".")
        self._below = labels[-1] in ("+", "*")
        self._itself = labels[-1] != "+"
        if self._below:
            labels.pop()
        self._name = _host(labels, self.text)
        self._ending = f".{self._name}" if self._name else ""

    def __repr__(self) -> str:
        return f"<DomainConstraint {self.text}>"

    def holds(self, host: str) -> bool:
        """Whether a canonical host name matches."""
        host = host.rstrip(".")
        if host == self._name:
            return self._itself
        if not self._below or not host:
            return False
        # Without a name (`*`, `+`) the constraint is the root, which everything is below.
        return not self._name or (host.endswith(self._ending) and not host[-1].isdigit() and ":" not in host)


def _host(labels: list[str], text: str) -> str:
    """The host name that the reversed labels stand for, in its canonical form; empty for the root."""
    if not labels:
        return ""
    advice = "write the host backwards, as hu.bme, hu.bme.+ or hu.bme.*"
    if "" in labels or {"+", "*"} & set("".join(labels)) or _UNFIT & set(text):
        raise ValueError(f"{text!r} is no domain constraint; {advice}")
    try:
        return host_of(canonical(f"http://{'.'.join(reversed(labels))}/"))
    except UnreadableUrl:
        raise ValueError(f"{text!r} names no host; {advice}") from None


class ConstraintSheet(Sheet, frozen=True):
    """Settings of :class:`ConstraintFilter`."""

    only: Annotated[
        tuple[str, ...],
        setting("If there are any, let pass only hosts that match one of these domain constraints, as `hu.bme.*`."),
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
        return [self._judge(task.url) for task in tasks]

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
