"""A wiring whose crawl comes back to known pages: the schedule between the stages and the ledger, and the stage that sees changes.

Place in the flow: `--recrawl` and the options that belong to it are compiled here. Agents put their divided ledger in front.
:class:`Changes` compares each visit with the one before it.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec

from gossamer.crawls.builder import Builder, behind_process
from gossamer.crawls.options import part_of
from gossamer.documents.charset import media_type_of
from gossamer.documents.content_coding import undone
from gossamer.documents.document import Document
from gossamer.documents.text import TextChoice
from gossamer.engine import sheet
from gossamer.engine import wiring as wirings
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.errors import SettingError, WiringError
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring
from gossamer.frontier.contract import KnownPages, PageTexts
from gossamer.recrawl.options import RecrawlOptions
from gossamer.storage.archive.reading import read_record
from gossamer.values.body import RENDERED_DIGEST
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import KnownPage, compared, is_judged_by_text
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response, Visit

#: Names of the new units in the wiring.
LEDGER, SCHEDULE, POLICY, STAGE, TEXTS = "revisit-ledger", "revisits", "revisit-policy", "changes", "page-texts"

#: Rules of other crawlers and books, by name; they say everything themselves.
_RULES = ("proportional", "nutch", "stormcrawler")

#: The options that say how, and mean nothing without `--recrawl`.
_HOW = ("recrawl_rate", "min_interval", "max_interval", "interval")


def wire(builder: Builder) -> None:
    """Do what the options say of known pages. A wiring that has a schedule keeps it unless told otherwise.
    Raises UsageError: the options do not fit. Raises WiringError: the wiring lacks a unit, or something bears a name that is
    needed here."""
    wiring, told = builder.wiring, part_of(builder.options, RecrawlOptions)
    has_schedule = SCHEDULE in wiring.providers and wiring.providers[SCHEDULE].use == "revisits"
    if not told.recrawl and not has_schedule:
        if given := [name for name in _HOW if getattr(told, name) not in (None, ())]:
            option = given[0].replace("_", "-")
            raise UsageError(f"--{option} says how known pages are visited again; give --recrawl as well")
        return
    if told.recrawl == "never":
        if has_schedule:
            builder.wiring = wirings.with_settings(wiring, SCHEDULE, {"is_active": False})
        return
    policy, mean = _policy(told.recrawl) if told.recrawl else (None, None)
    if builder.options.strategy == "random-walk":
        raise UsageError("a random walk comes back by itself; leave out --recrawl")
    if policy is not None and not has_schedule:
        _schedule(builder, policy)
    elif policy is not None:
        builder.wiring = msgspec.structs.replace(wiring, providers={**wiring.providers, POLICY: policy})
    wiring = _with_texts(builder.wiring)
    settings = _settings(told, wiring.providers[POLICY], wiring.providers[SCHEDULE].settings, mean)
    # Levels are importance where the most important page of a host comes first.
    settings["weighs"] = any(plan.use == "priority" for plan in wiring.providers.values())
    if told.interval:
        from gossamer.recrawl.policies import IntervalRules

        try:
            IntervalRules(told.interval)
        except SettingError as error:
            raise UsageError(f"--{error}") from None
        settings["intervals"] = list(told.interval)
    builder.wiring = wirings.with_settings(wiring, SCHEDULE, settings)


def _with_texts(wiring: Wiring) -> Wiring:
    """The wiring, whose pages are compared by the text that the process stage takes for theirs.

    Without an archive the old text cannot be read when it is needed, so that each page gets its fingerprint when it is fetched.
    """
    process = wiring.components["process"]  # behind which the stage stands that compares
    text = process.settings.get("text", TextsSheet().text)
    if text != wiring.providers[TEXTS].settings.get("text", TextsSheet().text):
        wiring = wirings.with_settings(wiring, TEXTS, {"text": text})
    if any(plan.use == "warc" for plan in wiring.providers.values()):
        return wiring
    try:
        return wirings.with_settings(wiring, "process", {"details": "full"})
    except (SettingError, WiringError) as error:
        raise WiringError(f"--recrawl sets unit 'process', but {error}") from None


def _policy(told: str) -> tuple[ProviderPlan, float | None]:
    """The policy that `--recrawl` names, and the mean interval that it says; None where it says none."""
    name, _, time = told.partition("=")
    if told in _RULES or (name == "adaptive" and not time):
        return ProviderPlan(name), None
    if name not in ("adaptive", "every") or not time:
        raise UsageError(
            f"--recrawl {told}: write adaptive, adaptive=TIME, every=TIME (as every=7d), {', '.join(_RULES)}, or never"
        )
    try:
        seconds = sheet.parse(time, "s")
    except ValueError as error:
        raise UsageError(f"--recrawl {name}=TIME: {error}") from None
    if seconds <= 0:
        raise UsageError(f"--recrawl {name}=TIME: the time is above 0")
    if name == "every":
        return ProviderPlan(name, settings={"every": seconds}), None
    return ProviderPlan(name), seconds


def _settings(told: RecrawlOptions, policy: ProviderPlan, kept: Any, mean: float | None) -> dict[str, Any]:
    from gossamer.recrawl.policies import RevisitSheet  # a crawl that does not come back needs none of it

    settings: dict[str, Any] = {"is_active": True}
    if mean is not None:
        settings["mean_interval"] = mean
    if (rate := told.recrawl_rate) is not None:
        try:
            settings["rate"] = share = sheet.parse(rate.removesuffix("%"), "") / (100 if rate.endswith("%") else 1)
        except ValueError:
            raise UsageError(f"--recrawl-rate {rate}: write a share, as 20%") from None
        if not 0 < share <= 1:
            raise UsageError(f"--recrawl-rate {rate}: a share is above 0 and at most 100%")
    for name in ("min_interval", "max_interval"):
        if (given := getattr(told, name)) is not None:
            settings[name] = given
    usual = RevisitSheet()
    least = settings.get("min_interval", kept.get("min_interval", usual.min_interval))
    most = settings.get("max_interval", kept.get("max_interval", usual.max_interval))
    every = policy.settings.get("every", mean)
    if every is not None:
        # A time that is said holds, whatever the usual bounds are; bounds that are given too must leave room for it.
        least = settings["min_interval"] = min(every, least) if told.min_interval is None else least
        most = settings["max_interval"] = max(every, most) if told.max_interval is None else most
        if not least <= every <= most:
            raise UsageError(f"--recrawl {policy.use}=TIME: the time is not between --min-interval and --max-interval")
    if least > most:
        raise UsageError("--min-interval is longer than --max-interval")
    return settings


def _schedule(builder: Builder, policy: ProviderPlan) -> None:
    wiring = builder.wiring
    ledger = wiring.components[wiring.only("frontier", "--recrawl needs")].providers["ledger"]
    wiring.check_free("--recrawl needs", providers=(LEDGER, SCHEDULE, POLICY, TEXTS))
    stage = ComponentPlan(use=STAGE, providers={"pages": SCHEDULE, "texts": TEXTS})
    builder.wiring, is_home = behind_process(wiring, STAGE, "compared-with-before", stage)
    if not is_home:
        raise WiringError(f"{wiring.source}: no stage behind 'process' runs in the main process; --recrawl needs one")
    for name, plan in wiring.components.items():
        if plan.use in ("frontier", "commit"):
            builder.bind(name, ledger=LEDGER, **({"revisits": {"due": [SCHEDULE]}} if plan.use == "frontier" else {}))
    builder.add_provider(POLICY, policy.use, policy.settings, policy.providers)
    builder.add_provider(SCHEDULE, "revisits", {}, {"ledger": ledger, "store": "ledger", "policy": POLICY})
    builder.add_provider(TEXTS, "compared-texts", {})
    builder.add_provider(LEDGER, "revisit-ledger", {}, {"behind": ledger, "revisits": SCHEDULE})


# Texts of pages, read when two versions of a page are compared: the new one as it came, the old one out of the archive. The stage
# `changes` asks for fingerprints where the bytes of a known page differ from those before.

#: Bytes of an archived answer that is read, since the crawl waits for it. Fingerprints are made of the first mebibyte of markup.
MOST_READ = 2 << 20


class TextsSheet(Sheet, frozen=True):
    directory: Annotated[str, setting("Read the archive of the crawl in this directory.", names="a folder")] = ""
    text: Annotated[
        TextChoice,
        setting("Compare the prose of pages, without menus and code (`main`), or every word that readers see (`all`)."),
    ] = "main"


class ComparedTexts(Provider[TextsSheet]):
    """Computes fingerprints of new and archived pages. Contract: `frontier.contract.PageTexts`."""

    def of_visit(self, visit: Visit) -> int:
        return Document(visit, choice=self.sheet.text).fingerprint if visit.media_type in HTML_TYPES else 0

    def of_known(self, url: str, page: KnownPage) -> int:
        """That of the page as the archive keeps it. Records of other bytes, after a deletion as it may be, say nothing."""
        if page.body_at is None:
            return 0
        place, name = page.body_at, "warc-payload-digest"
        if place.dom:
            place, name = place.rendered, "warc-block-digest"
        try:
            record = read_record(Path(self.sheet.directory), place, MOST_READ)
        except (CrawlDirectoryError, OSError):
            self.metrics.count("unreadable")
            return 0
        if record.kind == "revisit" or record.fields.get(name) != f"sha1:{page.digest.removeprefix(RENDERED_DIGEST)}":
            self.metrics.count("unreadable")
            return 0
        body = undone(record.headers, record.body)
        if not body.is_readable:
            return 0
        response = Response(Outcome.OK, record.status, headers=record.headers, body=record.body, decoded=body.data)
        return self.of_visit(Visit(Task(url, host_of(url)), response, mime=media_type_of(response)))


# Changes: does this visit bring what the one before brought? Between process and links. Wired where pages are visited again
# (`--recrawl`), in the process that has the ledger. Texts are compared where bytes differ, so that no page is read for its text
# before it changes (decision 86).


class Changes(Filter[NoSettings]):
    """Fills in `compared`, and `simhash` of pages whose bytes changed."""

    inbox: In[Visit]
    outbox: Out[Visit]
    pages: Uses[KnownPages]
    texts: Uses[PageTexts]

    #: As content-seen, which may call this in place.
    batch = 8

    def filter(self, visit: Visit) -> tuple[Visit]:
        """One look-up for a page that may be known."""
        if visit.is_robots or visit.task.is_marked:
            return (visit,)
        known = self.pages.known(visit.task)
        if known is None:
            return (visit,)
        if is_judged_by_text(known, visit):
            simhash = visit.simhash or self.texts.of_visit(visit)
            if simhash and not known.simhash:
                known = msgspec.structs.replace(known, simhash=self.texts.of_known(visit.url, known))
                self.metrics.counters["texts_read"] += 1
            visit = msgspec.structs.replace(visit, simhash=simhash)
        found = compared(known, visit)
        if found is None:
            return (visit,)
        self.metrics.counters[found.change.value] += 1
        return (msgspec.structs.replace(visit, compared=found),)
