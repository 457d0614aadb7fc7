"""The process stage: every document is read by the processors of its media type, several where there are several.

Processors of the wiring come first; then those that a program registered with `@gossamer.processor`. Keys of the wiring are
media types, a kind of them as `image/*`, or `*`. A redirect has no document, but a target: that is a link of its own kind,
which every later stage judges like any other (design question 4).

Nearly every page is read in place. A page that its parser could choke on, all documents of a processor named in `isolated`, and
pages that a processor finds too dear, go to a parser process (:mod:`gossamer.parsing.isolation`), while other pages pass by.
A page that was read in place when the process died goes there, too, when the crawl goes on.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec

from gossamer.documents.charset import media_type_of
from gossamer.documents.document import Document
from gossamer.documents.language import CODES, primary
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, UsesMany
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, nearest, setting
from gossamer.expressions.contract import VisitFilter, refusal
from gossamer.parsing.contract import Processor
from gossamer.parsing.findings import (
    Details,
    Findings,
    ProcessorSpec,
    Reading,
    before,
    disowned,
    filled,
    joined,
    read,
    refresh_of,
    with_target,
    without,
)
from gossamer.parsing.isolation import MOST_STRIKES, ParserFailed, Parsers, ReadingMarks, spec_of
from gossamer.values.media_type import HTML_TYPES, XHTML
from gossamer.values.outcome import DOCUMENTS, Outcome
from gossamer.values.settings import Language, Text
from gossamer.values.visit import Found, Visit, given_up

#: Reading a byte of XHTML costs so many times as much as one of HTML.
_SHARE_OF_XHTML = 20

#: How much longer a processor may take that reads alone: the largest sitemap that the standard allows takes ten seconds.
_PATIENCE = 2

#: Letters of an ISO 639-1 code. Pages may declare any tag: only so many are counted by name.
_CODE = 2

#: Kinds of errors of a user's code that are told while the crawl runs; all of them are in the table `errors`.
MOST_TOLD = 20

_fixed = partial(setting, restart="running parser processes were started with it")


class ProcessSheet(Sheet, frozen=True):
    agent: Annotated[str, setting("Obey `robots` tags of pages that name this product token.")] = "Gossamer"
    details: Annotated[
        Details,
        setting(
            "`plain` finds title, base, charset, robots tags, canonical URL and the language that a page declares; "
            "`full` also finds the language of its text and its fingerprint."
        ),
    ] = "plain"
    text: Text = "main"
    languages: Language = ()
    obey_nofollow: Annotated[
        bool, setting("Treat every link of a page as `nofollow` if the page as a whole says so.")
    ] = True
    isolated: Annotated[
        tuple[str, ...], setting("Run these processors, by their names in the wiring, in a process that can be killed.")
    ] = ()
    parsers: Annotated[
        int,
        _fixed(
            "Run at most this many parser processes; with 0, pages that need one get no tree.", unit="processes", ge=0
        ),
    ] = 1
    apart: Annotated[int, setting("Read documents larger than this in a parser process.", unit="bytes", ge=0)] = (
        2_500_000  # 30 ms here, while all else waits, and 1 s for the worst markup; starting a parser process takes 80 ms
    )
    parse_deadline: Annotated[float, _fixed("Kill a parser process that takes longer than this.", unit="s", gt=0)] = 5.0
    retries: Annotated[
        int,
        setting(
            "Fetch a page again at most this many times because a handler asks for it.", unit="tries", ge=0, le=100
        ),
    ] = 3
    directory: Annotated[
        str,
        setting(
            "Note in this crawl directory which page is being read, so that a page that ends the process is not read in it "
            "again; if empty, it is not noted.",
            restart="it is the crawl's directory",
            names="a folder",
        ),
    ] = ""
    parse_memory: Annotated[
        int, _fixed("Limit the address space of a parser process to this; 0: no limit.", unit="bytes", ge=0)
    ] = 500_000_000


class Process(Filter[ProcessSheet]):
    """Fills in the facts that a page holds (`mime` to `discarded`), its links and items, and `trouble` if something
    went wrong."""

    inbox: In[Visit]
    outbox: Out[Visit]
    processors: UsesMany[Processor]
    gates: UsesMany[VisitFilter]

    #: As content-seen, which may call this in place.
    batch = 8

    def __init__(self, sheet: ProcessSheet | None = None) -> None:
        super().__init__(sheet)
        self._told: set[tuple[str, str]] = set()
        """Errors and their processors that people were told of."""
        self._parsers = Parsers(max(1, self.sheet.parsers), self.sheet.parse_deadline, self.sheet.parse_memory)
        self._marks = ReadingMarks()
        self.metrics.gauge("parsers_started", lambda: self._parsers.started)
        self.metrics.gauge("parsers_killed", lambda: self._parsers.killed)

    def read_sheet(self) -> None:
        self._languages = _languages(self.sheet)

    def changed(self, before: ProcessSheet) -> None:
        self._check_isolated()
        super().changed(before)

    async def start(self) -> None:
        """Refuse a processor that is to be isolated and cannot be, or is unknown: it would run unisolated. Raises SettingError:
        says which."""
        self._check_isolated()
        for processor in {p for group in self.processors.values() for p in group if self._is_isolated(p)}:
            if spec_of(processor) is None:
                raise SettingError(
                    f"processor {getattr(processor, 'name', processor)!r} cannot be isolated: it has to be a class of a "
                    "module that can be imported, without providers of its own"
                )
            if self.sheet.parsers > 1 and not _is_divisible(processor):
                raise SettingError(
                    f"processor {getattr(processor, 'name', processor)!r} may keep state, which {self.sheet.parsers} parser "
                    "processes would divide: set parsers=1, or say `divisible = True` in its class"
                )
        self._marks.open(self.sheet.directory)

    def _check_isolated(self) -> None:
        known = {getattr(one, "name", "") for group in self.processors.values() for one in group}
        if strange := [name for name in self.sheet.isolated if name not in known]:
            raise SettingError(f"isolated: there is no processor {strange[0]!r}{nearest(strange[0], known)}")

    async def stop(self) -> None:
        await self._parsers.close()
        self._marks.close()

    async def filter_many(self, visits: list[Visit]) -> list[Visit]:
        """A batch of visits; those that another process reads come last, and hold up no other."""
        ready: list[Visit] = []
        apart: list[Coroutine[Any, Any, Visit]] = []
        for visit in visits:
            done = self._read(visit)
            if isinstance(done, Visit):
                ready.append(done)
            else:
                apart.append(done)
        if not apart:
            return ready
        if ready:
            await self.outbox.send_many(ready)
        if len(apart) == 1:
            return [await apart[0]]
        return list(await asyncio.gather(*apart))

    def _read(self, visit: Visit) -> "Visit | Coroutine[Any, Any, Visit]":
        """The visit, read; or a coroutine that reads it while others go on."""
        marks = self._marks
        strikes = marks.begin(visit.url)
        done = self._read_here(visit, strikes)
        marks.end()
        return self._read_apart(visit, strikes) if done is None else done

    # -- one visit

    def _read_here(self, visit: Visit, strikes: int) -> "Visit | Coroutine[Any, Any, Visit] | None":
        """The visit, read; a coroutine where a part of it has to be read apart; None where all of it has to be."""
        response = visit.response
        if (
            visit.is_robots or visit.is_part or visit.task.is_want
        ):  # of a part, the program that brought it has said all that is known
            return visit
        if response.outcome is Outcome.REDIRECT:
            return with_target(visit)
        if response.outcome not in DOCUMENTS:
            refresh = refresh_of(response)
            return msgspec.structs.replace(visit, base=visit.url, found=refresh) if refresh else visit
        if response.barred:
            return visit
        visit = self._sniffed(visit)
        if self.gates.get("parse") and (barred := self._barred(visit)):
            return barred
        processors = self._processors_of(visit.mime)
        document = self._document(visit)
        found = before(document)
        if not processors:
            self.metrics.counters["unprocessed"] += 1
            if not found:
                return visit
        if strikes:
            return self._spared(visit, strikes)
        if self._is_apart(document, processors):
            return None
        dear: list[Processor] = []
        findings = read(document, processors, self.sheet.details, language=bool(self._languages), apart=dear)
        if not dear:
            return self._finished(visit, findings, found)

        async def read_rest() -> Visit:
            return self._finished(visit, await self._completed(visit, findings, dear), found)

        return read_rest()

    async def _completed(self, visit: Visit, findings: Findings, processors: Sequence[Processor]) -> Findings:
        """The findings with those of processors that found the page too dear to be read here."""
        specs = [spec for processor in processors if (spec := spec_of(processor)) is not None]
        if not self.sheet.parsers or len(specs) < len(processors):
            return without(findings, processors)
        self.metrics.count("read_apart")
        return joined(findings, await self._isolated(visit, specs, deadline=_PATIENCE * self.sheet.parse_deadline))

    def _spared(self, visit: Visit, strikes: int) -> Visit | None:
        """Decide about a page that was being read when the process died: None where it is read apart, once."""
        self.metrics.count("reader_killed")
        done = strikes >= MOST_STRIKES
        will = "it is not read any more" if done else "it is read in a process of its own"
        self.report(f"{visit.url}: the process died while it read this page, so {will}")
        return self._finished(visit, Findings(base=visit.url, trouble="reader_killed"), ()) if done else None

    def _barred(self, visit: Visit) -> Visit | None:
        """The visit of a document that no filter lets be parsed; None where it may be."""
        rule = refusal(self.gates.get("parse", ()), "parse", visit)
        if not rule:
            return None
        self.metrics.count(f"barred:{rule}")
        return msgspec.structs.replace(visit, barred={**visit.barred, "parse": rule})

    def _document(self, visit: Visit) -> Document:
        return Document(visit, self.sheet.agent, choice=self.sheet.text, holds_up=True)

    def _is_apart(self, document: Document, processors: Sequence[Processor]) -> bool:
        """Whether some of it has to be read in a parser process."""
        if self.sheet.isolated and any(map(self._is_isolated, processors)):
            return True
        return bool(self.sheet.parsers) and self._is_dear(document, processors)

    async def _read_apart(self, visit: Visit, strikes: int = 0) -> Visit:
        """The visit, read in a parser process as far as can be. Never raises."""
        visit = self._sniffed(visit)
        findings = await self._findings_apart(visit, self._processors_of(visit.mime), is_dear=bool(strikes))
        return self._finished(visit, findings, before(self._document(visit)))

    async def _findings_apart(
        self, visit: Visit, processors: Sequence[Processor], *, is_dear: bool = False
    ) -> Findings:
        document = self._document(visit)
        dear = is_dear or self._is_dear(document, processors)
        self.metrics.count("read_apart")
        here: list[Processor] = []
        there: list[ProcessorSpec] = []
        for processor in processors:
            apart = self._is_isolated(processor) or (dear and _is_divisible(processor))
            spec = spec_of(processor) if apart else None
            if spec is None:
                here.append(processor)
            else:
                there.append(spec)
        if dear and (there or visit.mime in HTML_TYPES):
            findings = await self._parsed(visit, there)
            more = await self._read_in_place(visit, document, here, "plain") if here else Findings()
        else:
            more = await self._isolated(visit, there)
            findings = await self._read_in_place(visit, document, here, self.sheet.details)
        return joined(findings, more)

    async def _read_in_place(
        self, visit: Visit, document: Document, processors: Sequence[Processor], details: Details
    ) -> Findings:
        """The findings of processors that read here, but for those that find the page too dear."""
        dear: list[Processor] = []
        self._marks.begin(visit.url)
        findings = read(document, processors, details, language=bool(self._languages), apart=dear)
        self._marks.end()
        return await self._completed(visit, findings, dear) if dear else findings

    def _is_dear(self, document: Document, processors: Sequence[Processor]) -> bool:
        """Reading it here would hold up the crawl: by its markup, or by its size where a processor reads it at all."""
        share = _SHARE_OF_XHTML if document.mime == XHTML else 1
        if len(document.visit.shown) * share > self.sheet.apart:
            return bool(processors)
        return document.mime in HTML_TYPES and (document.is_dear or bool(document.trouble))

    def _reading(self, details: Details) -> Reading:
        return Reading(self.sheet.agent, details, bool(self._languages), self.sheet.text)

    async def _parsed(self, visit: Visit, processors: Sequence[ProcessorSpec]) -> Findings:
        """A page that may cost too much: its tree is built where that can be killed, and done without where it had to be. Where
        that fails as well, each processor reads it alone: one that does not come back costs its own findings."""
        trouble = ""
        for _ in range(2):
            try:
                return await self._parsers.read(visit, processors, self._reading(self.sheet.details), trouble)
            except ParserFailed as failure:
                trouble = trouble or str(failure)
                self.metrics.count(str(failure))
        findings = Findings(base=visit.url, trouble=trouble)
        return joined(findings, await self._isolated(visit, processors, trouble)) if len(processors) > 1 else findings

    async def _isolated(
        self, visit: Visit, processors: Sequence[ProcessorSpec], trouble: str = "", deadline: float = 0.0
    ) -> Findings:
        """The findings of processors that are not trusted, each for itself: one that fails costs its own findings."""
        joint = Findings()
        for spec in processors:
            try:
                findings = await self._parsers.read(visit, (spec,), self._reading("plain"), trouble, deadline)
            except ParserFailed as failure:
                self.metrics.count(f"{failure}:{spec.name}")
                findings = Findings(trouble=f"{spec.name}: {failure}")
            joint = joined(joint, findings)
        return joint

    def _sniffed(self, visit: Visit) -> Visit:
        """The visit with the media type that its bytes show."""
        if visit.mime:
            return visit
        mime = media_type_of(visit.response, visit.task.found_by)
        if mime != visit.response.mime:
            self.metrics.count("sniffed")
        return msgspec.structs.replace(visit, mime=mime)

    def _processors_of(self, mime: str) -> Sequence[Processor]:
        """Those of the type, then of its kind, then those for everything; each once."""
        get = self.processors.get
        groups = (get(mime, ()), get(f"{mime.partition('/')[0]}/*", ()), get("*", ()))
        if not groups[1] and not groups[2]:
            return groups[0]
        return list(dict.fromkeys(processor for group in groups for processor in group))

    def _is_isolated(self, processor: Processor) -> bool:
        return getattr(processor, "name", "") in self.sheet.isolated

    def _finished(self, visit: Visit, findings: Findings, before: tuple[Found, ...]) -> Visit:
        """The visit with its findings; without links where the page or the crawl does not want them followed."""
        for name, count in findings.counts.items():
            self.metrics.count(name, count)
        carried = visit.items  # a mobile crawler's processors found them
        visit = filled(visit, findings, before)
        if visit.errors:
            self.told_of(visit)
        if carried:
            visit = msgspec.structs.replace(visit, items=(*carried, *visit.items))
        if visit.again is not None:
            if visit.task.attempt <= self.sheet.retries:
                return msgspec.structs.replace(visit, found=(), items=(), triples=(), orders=())
            return given_up(msgspec.structs.replace(visit, again=None), f"asked for again at try {visit.task.attempt}")
        if self._languages and visit.language and visit.language not in self._languages and visit.mime in HTML_TYPES:
            rule = f"language:{visit.language if len(visit.language) == _CODE else 'other'}"
            self.metrics.count(rule)
            return msgspec.structs.replace(
                visit, found=(), items=(), orders=(), discarded=rule, barred={**visit.barred, "store": rule}
            )
        if visit.found and self.sheet.obey_nofollow and "nofollow" in visit.directives:
            self.metrics.count("nofollow_pages")
            return disowned(visit)
        return visit

    def told_of(self, visit: Visit) -> Visit:
        """The visit, after its errors were told to the person who runs the crawl: each kind once, with the line to look at."""
        for one in visit.errors:
            what = (one.who, one.error.partition(":")[0])
            if what not in self._told and len(self._told) < MOST_TOLD:
                self._told.add(what)
                self.report(f"{one.place or visit.url}: {one.who}: {one.error} (on {visit.url})")
        return visit


def _is_divisible(processor: Processor) -> bool:
    """Further instances of it may read some of the documents."""
    return bool(getattr(processor, "divisible", False))


def _languages(sheet: ProcessSheet) -> frozenset[str]:
    for tag in sheet.languages:
        code = primary(tag)
        # Codes of three letters are those of languages that ISO 639-1 leaves out: pages name them, too.
        if not code or (len(code) == _CODE and code not in CODES):
            raise SettingError(
                f"setting 'languages': {tag!r} is not a language of ISO 639; write it as de, fr or pt-BR"
            )
    return frozenset(map(primary, sheet.languages))
