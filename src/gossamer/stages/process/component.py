"""The process stage: every document is read by the processors of its media type, several where there are several.

Processors of the wiring come first; then those that a program registered with `@gossamer.processor`. A redirect has no
document, but a target: that is a link of its own kind, which every later stage judges like any other (DESIGN 9.4).
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from gossamer.contracts.filtering import VisitFilter, refusal
from gossamer.contracts.processing import Processor
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, UsesMany
from gossamer.flow.sheet import NoSettings
from gossamer.model.document import Document
from gossamer.model.outcome import Outcome
from gossamer.model.visit import Found, Item, Response, Visit
from gossamer.stages.process.html import refresh_target


class Process(Filter[NoSettings]):
    """Fills in title, base, charset, links found and items; `trouble` where something went wrong."""

    inbox: In[Visit]
    outbox: Out[Visit]
    processors: UsesMany[Processor]
    gates: UsesMany[VisitFilter]

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One visit, read by all of its processors."""
        response = visit.response
        if visit.is_robots:
            return (visit,)
        if response.outcome is Outcome.REDIRECT:
            return (_with_target(visit),)
        if response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
            return (visit,)
        rule = refusal(self.gates.get("parse", ()), "parse", visit)
        if rule:
            self.metrics.count(f"barred:{rule}")
            return (msgspec.structs.replace(visit, barred={**visit.barred, "parse": rule}),)
        processors = [p.process for p in self.processors.get(response.mime, ())]
        refresh = _refresh(response)
        if not processors:
            if refresh:
                return (msgspec.structs.replace(visit, base=visit.url, found=refresh),)
            self.metrics.counters["unprocessed"] += 1
            return (visit,)
        return (self._processed(visit, processors, refresh),)

    def _processed(
        self,
        visit: Visit,
        processors: Sequence[Callable[[Document], Iterable[Found | Item]]],
        found_before: Sequence[Found],
    ) -> Visit:
        document = Document(visit)
        found: list[Found] = list(found_before)
        items: list[Item] = []
        trouble = ""
        for process in processors:
            try:
                for thing in process(document):
                    if type(thing) is Found:
                        found.append(thing)
                    else:
                        items.append(_as_item(thing))
            except Exception as error:
                # A processor that raises costs its own findings on this page, and nothing else (MISSION S10).
                self.metrics.count(f"raised:{type(error).__name__}")
                trouble = f"{type(error).__name__}: {error}"[:200]
        return msgspec.structs.replace(
            visit,
            title=document.title,
            base=document.base,
            charset=document.charset,
            found=tuple(found),
            items=tuple(items),
            trouble=trouble or document.trouble,
        )


def _as_item(thing: object) -> Item:
    """What a processor yielded, if it is something that a processor may yield.

    Raises:
        TypeError: it is not; says what would be.
    """
    if not isinstance(thing, Item):
        raise TypeError(f"a processor yields gossamer.Found or gossamer.Item, not {type(thing).__name__}")
    return thing


def _refresh(response: Response) -> tuple[Found, ...]:
    """The target of a `Refresh` field: a link like any other, never obeyed in place (FAULTS 33)."""
    target = refresh_target(response.header("refresh")) if response.header("refresh") else None
    return (Found(target, "header refresh"),) if target else ()


def _with_target(visit: Visit) -> Visit:
    """The target of a redirect as the one link of the visit; a redirect without one is only its status."""
    target = visit.response.header("location")
    if not target:
        return visit
    return msgspec.structs.replace(visit, base=visit.url, found=(Found(target, "redirect"),))
