"""A spider in a wiring: its handlers get pages where they are processed, and failures pass there too.

Place in the flow: :mod:`gossamer.api` calls :func:`with_spider` before a crawl is made. A wiring that has a spider is left as it
is: its crawl goes on. :class:`HandlingProcess` stands in the place of :class:`~gossamer.parsing.process_stage.Process`, which it is
for all other pages: a page that a handler wants goes to it, and it decides what is followed there.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import msgspec

from gossamer.crawls.compiling import normal_seeds
from gossamer.crawls.plan import read_seeds
from gossamer.documents.document import Document
from gossamer.engine.ends import Uses
from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import ProviderPlan, Wiring
from gossamer.parsing.contract import PageHandlers, Processor
from gossamer.parsing.findings import Findings, ProcessorSpec, Reading, filled, joined
from gossamer.parsing.isolation import ParserFailed
from gossamer.parsing.process_stage import Process
from gossamer.values.outcome import DOCUMENTS
from gossamer.values.request import Request
from gossamer.values.request_identity import Requested
from gossamer.values.task import RELATIONS
from gossamer.values.visit import Raised, Visit, given_up

#: The provider of handlers, by its name in the wiring and in the catalog.
SPIDER = "spider"

#: The module in front of that for http, by its name in the wiring and in the catalog.
LOG_INS = "log-ins"

#: The module in front of both that says who asks, by its name in the wiring and in the catalog.
SESSIONS = "sessions"

#: Stages from content-seen to url-seen call each other in place: a handler that waits holds up one of so many workers. Pools
#: grow only while all are busy.
_WORKERS = 16
_CALLED_IN_PLACE = frozenset(
    ("content-seen", "near-duplicates", "process", "handling-process", "links", "filter", "url-seen")
)


def with_spider(wiring: Wiring, file: str) -> Wiring:
    """A copy of the wiring that hands pages and failures to the provider :data:`SPIDER`; `file` is the one that the spider was
    loaded from, empty where it is part of a program. Raises WiringError: no component uses `process`, `frontier` or `fetch`."""
    if SPIDER in wiring.providers:
        return wiring
    process, frontier, fetch = (_named(wiring, use) for use in ("process", "frontier", "fetch"))
    components = {
        name: msgspec.structs.replace(plan, workers=max(plan.workers or 1, _WORKERS))
        if plan.use in _CALLED_IN_PLACE
        else plan
        for name, plan in wiring.components.items()
    }
    plan = components[process]
    components[process] = msgspec.structs.replace(
        plan, use="handling-process", providers={**plan.providers, "handlers": SPIDER}
    )
    # A visit that fetched nothing (robots, blocked hosts, interrupted) takes the way of the others: handlers of failures see it.
    ports = {**components[frontier].ports, "refused": components[fetch].ports["visits"]}
    components[frontier] = msgspec.structs.replace(components[frontier], ports=ports)
    for name, plan in components.items():
        if plan.use == "seeds":
            components[name] = msgspec.structs.replace(
                plan, use="requested-seeds", providers={**plan.providers, "asking": SPIDER}
            )
    # Requests wait in the ledger with all that they send.
    providers = {
        name: msgspec.structs.replace(one, settings={**one.settings, "private": True}) if one.use == "ledger" else one
        for name, one in wiring.providers.items()
    }
    settings = {"file": file} if file else {}
    providers[SPIDER] = ProviderPlan(use=SPIDER, settings=settings, providers={"politeness": "politeness"})
    return msgspec.structs.replace(wiring, components=components, providers=providers)


def with_log_ins(wiring: Wiring) -> Wiring:
    """A copy of a wiring with a spider, in which its log-ins come before the pages that the module for http fetches.
    Raises WiringError: it has no component that fetches."""
    if LOG_INS in wiring.providers:
        return wiring
    if (rotating := wiring.providers.get(SESSIONS)) is not None:  # behind the asking one, wherever that stood
        keeper = str(rotating.providers["keeper"])
        front = ProviderPlan(use=LOG_INS, providers={"behind": keeper, "logins": SPIDER})
        rotating = msgspec.structs.replace(rotating, providers={**rotating.providers, "behind": LOG_INS})
        return msgspec.structs.replace(wiring, providers={**wiring.providers, SESSIONS: rotating, LOG_INS: front})
    return _with_front(wiring, LOG_INS, lambda behind: {"logins": SPIDER})


def with_sessions(wiring: Wiring) -> Wiring:
    """A copy of a wiring with a spider, and its log-ins where it has some, in which each page is asked for by a session.
    Raises WiringError: it has no component that fetches."""
    if SESSIONS in wiring.providers:
        return wiring

    def providers(behind: str) -> dict[str, str]:
        keeper = str(wiring.providers[LOG_INS].providers["behind"]) if behind == LOG_INS else behind
        return {"keeper": keeper, "sessions": SPIDER}

    return _with_front(wiring, SESSIONS, providers)


def _with_front(wiring: Wiring, name: str, providers: Callable[[str], dict[str, str]]) -> Wiring:
    """The wiring with a module in front of that for http; `providers` has the others of it, by the name of the one behind."""
    fetch = _named(wiring, "fetch")
    plan = wiring.components[fetch]
    bound = plan.providers.get("protocols")
    protocols = dict(bound) if isinstance(bound, dict) else {}
    behind = protocols.get("https") or protocols.get("http")
    if not isinstance(behind, str):
        raise WiringError(f"{wiring.source}: a spider with sessions needs one module for http, which this wiring lacks")
    front = ProviderPlan(use=name, providers={"behind": behind, **providers(behind)})
    schemes = {scheme: name for scheme in ("http", "https") if scheme in protocols}
    plan = msgspec.structs.replace(plan, providers={**plan.providers, "protocols": {**protocols, **schemes}})
    return msgspec.structs.replace(
        wiring, components={**wiring.components, fetch: plan}, providers={**wiring.providers, name: front}
    )


def asked_of(seeds: Iterable[str | Request], wiring: Wiring) -> dict[str, list[Requested | None]]:
    """The request of each seed, all of which were read as URLs already, by the URL that the crawl has for it. Raises
    UsageError: a request cannot be kept."""
    asked: dict[str, list[Requested | None]] = {}
    for seed in seeds:
        found = seed.kept() if isinstance(seed, Request) else None
        [url] = normal_seeds(wiring, read_seeds([seed if isinstance(seed, str) else seed.url]))
        asked.setdefault(url, []).append(None if found is None else found.request)
    return asked


def _named(wiring: Wiring, use: str) -> str:
    found = next((name for name, plan in wiring.components.items() if plan.use == use), "")
    if not found:
        raise WiringError(f"{wiring.source}: a spider needs a component that uses {use!r}, which this wiring lacks")
    return found


class HandlingProcess(Process):
    """Does everything that `process` does, and gives visits to the handlers of a spider that want them."""

    handlers: Uses[PageHandlers]

    _has_told = False

    def _read(self, visit: Visit) -> Visit | Coroutine[Any, Any, Visit]:
        """The port that hands the visit to its handler; as for any crawl where no handler wants it."""
        if visit.response.outcome in DOCUMENTS and not visit.response.barred and not visit.is_robots:
            visit = self._sniffed(visit)
        if not visit.task.is_want and self.handlers.wants(visit):
            return self._handled(visit)
        return super()._read(visit)

    async def _handled(self, visit: Visit) -> Visit:
        """The visit with what its handler yields; of its default links nothing is left but what a browser shows it with."""
        is_document = visit.response.outcome in DOCUMENTS
        if is_document and (barred := self._barred(visit)):
            return barred
        request = visit.task.request
        if request is not None and request.render and is_document and visit.rendered is None and visit.is_page:
            # A request asks for a browser, and the crawl has none: a person is told once.
            if not self._has_told:
                self._has_told = True
                self.report(
                    f'a request for {visit.url} asks for a browser, and this crawl has none; run it with render="asked"'
                )
            self.metrics.count("not_rendered")
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
        """The results of the handler, in whichever process."""
        elsewhere = self.handlers.elsewhere(visit)
        if elsewhere is not None:
            spec = ProcessorSpec(elsewhere.module, elsewhere.name, dict(elsewhere.sheet))
            reading = Reading(self.sheet.agent, self.sheet.details, False, self.sheet.text)
            try:
                findings = await self._parsers.read(visit, (spec,), reading, deadline=elsewhere.deadline)
                if findings.is_retired:
                    self.handlers.retired(visit)
                if findings.is_out:
                    self.handlers.left(visit)
                return findings
            except ParserFailed as failure:
                self.metrics.count(f"{failure}:{elsewhere.who}")
                error = f"{failure}: its process did not come back within {elsewhere.deadline:g} s, or died"
                return Findings(base=visit.url, trouble=error, errors=(Raised(elsewhere.who, elsewhere.place, error),))
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


def _is_asked(processor: Processor) -> bool:
    """Whether it is asked for pages whose handler decides what is followed: not if all it finds are links to follow."""
    if not getattr(processor, "finds_links", False):
        return True
    return bool(getattr(getattr(processor, "sheet", None), "requisites", False))
