"""The process stage of a spider: pages that a handler wants go to it, and it decides what is followed there.

Place in the flow: stands in the place of :class:`~gossamer.parsing.component.Process`, which it is for all other pages. Here
failures pass too, so that handlers of failures see them before they are committed.
"""

from collections.abc import Coroutine
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.engine.ends import Uses
from gossamer.parsing.component import Process
from gossamer.parsing.contract import Elsewhere, PageHandlers, Processor
from gossamer.parsing.findings import Findings, filled, joined
from gossamer.parsing.isolation import ParserFailed
from gossamer.parsing.parser import ProcessorSpec
from gossamer.values.outcome import DOCUMENTS
from gossamer.values.relations import RELATIONS
from gossamer.values.visit import Raised, Visit, given_up


class HandlingProcess(Process):
    """Does everything that `process` does, and gives visits to the handlers of a spider that want them."""

    handlers: Uses[PageHandlers]

    def _read(self, visit: Visit) -> Visit | Coroutine[Any, Any, Visit]:
        """What hands the visit to its handler; where nobody wants it, as for any crawl."""
        if visit.response.outcome in DOCUMENTS and not visit.response.barred and not visit.is_robots:
            visit = self._sniffed(visit)
        if self.handlers.wants(visit):
            return self._handled(visit)
        return super()._read(visit)

    async def _handled(self, visit: Visit) -> Visit:
        """The visit with what its handler yields; of its default links nothing is left but what a browser shows it with."""
        is_document = visit.response.outcome in DOCUMENTS
        if is_document and (barred := self._barred(visit)):
            return barred
        document = self._document(visit)
        made = await self._made(visit, document)
        if made.again is not None:
            if visit.task.attempt <= self.sheet.retries:
                return msgspec.structs.replace(visit, base=visit.url, again=made.again)
            gone = given_up(visit, f"its handler asked for it again at try {visit.task.attempt}")
            made = await self._made(gone, document) if self.handlers.wants(gone) else Findings()
            return self.told_of(filled(gone, msgspec.structs.replace(made, base=visit.url, again=None)))
        if not is_document:
            return self.told_of(filled(visit, made))
        others = [one for one in self._processors_of(visit.mime) if _is_asked(one)]
        if self._is_apart(document, others):
            findings = await self._findings_apart(visit, others)
        else:
            findings = await self._read_in_place(visit, document, others, self.sheet.details)
        parts = tuple(one for one in findings.found if one.relation in RELATIONS)
        return self._finished(visit, joined(msgspec.structs.replace(findings, found=parts), made), ())

    async def _made(self, visit: Visit, document: Document) -> Findings:
        """What the handler yields, in whichever process."""
        elsewhere = self.handlers.elsewhere(visit)
        if elsewhere is not None:
            return await self._made_elsewhere(visit, elsewhere)
        document = document if visit is document.visit else self._document(visit)
        made = await self.handlers.handle(document)
        return Findings(
            made.found,
            made.items,
            orders=made.orders,
            base=visit.url,
            trouble=made.errors[0].error if made.errors else document.missed,
            errors=made.errors,
            again=made.again,
        )

    async def _made_elsewhere(self, visit: Visit, elsewhere: Elsewhere) -> Findings:
        spec = ProcessorSpec(elsewhere.module, elsewhere.name, dict(elsewhere.sheet))
        agent, details, choice = self.sheet.agent, self.sheet.details, self.sheet.text
        try:
            made = await self._parsers.read(
                visit, (spec,), agent, details, language=False, trouble="", choice=choice, deadline=elsewhere.deadline
            )
            if made.is_retired:
                self.handlers.retired(visit)
            if made.is_out:
                self.handlers.left(visit)
            return made
        except ParserFailed as failure:
            self.metrics.count(f"{failure}:{elsewhere.who}")
            error = f"{failure}: its process did not come back within {elsewhere.deadline:g} s, or died"
            return Findings(base=visit.url, trouble=error, errors=(Raised(elsewhere.who, elsewhere.place, error),))


def _is_asked(processor: Processor) -> bool:
    """Whether it is asked for pages whose handler decides what is followed: not if all it finds are links to follow."""
    if not getattr(processor, "finds_links", False):
        return True
    return bool(getattr(getattr(processor, "sheet", None), "requisites", False))
