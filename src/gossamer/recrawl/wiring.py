"""A wiring whose crawl comes back to known pages: the schedule between the stages and the ledger, and the stage that sees changes.

Place in the flow: `--recrawl` and the options that belong to it are compiled here. Agents put their divided ledger in front.
"""

from typing import Any

import msgspec

from gossamer.crawls.builder import Builder
from gossamer.crawls.documents import behind_process
from gossamer.crawls.options import CrawlOptions, part_of
from gossamer.engine import sheet
from gossamer.engine import wiring as wirings
from gossamer.engine.errors import SettingError, WiringError
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring
from gossamer.recrawl.changes import TextsSheet
from gossamer.recrawl.intervals import IntervalRules, RevisitSheet
from gossamer.recrawl.options import RecrawlOptions
from gossamer.values.errors import UsageError

#: What the new units are called in the wiring.
LEDGER, SCHEDULE, POLICY, STAGE, TEXTS = "revisit-ledger", "revisits", "revisit-policy", "changes", "page-texts"

#: Rules of other crawlers and books, by name; they say everything themselves.
_RULES = ("proportional", "nutch", "stormcrawler")

#: The options that say how, and mean nothing without `--recrawl`.
_HOW = ("recrawl_rate", "min_interval", "max_interval", "interval")


def wire(builder: Builder) -> None:
    """Do what the options say of known pages. A wiring that has a schedule keeps it unless told otherwise.

    Raises:
        UsageError: the options do not fit.
        WiringError: the wiring lacks a unit.
    """
    builder.wiring = _wired(builder.wiring, builder.options, part_of(builder.options, RecrawlOptions))


def _wired(wiring: Wiring, options: CrawlOptions, told: RecrawlOptions) -> Wiring:
    """A copy of a wiring that does what the options say of known pages.

    Raises:
        UsageError: the options do not fit.
        WiringError: the wiring has no frontier or no commit, or something bears a name that is needed here.
    """
    has_schedule = SCHEDULE in wiring.providers and wiring.providers[SCHEDULE].use == "revisits"
    if not told.recrawl and not has_schedule:
        if given := [name for name in _HOW if getattr(told, name) not in (None, ())]:
            option = given[0].replace("_", "-")
            raise UsageError(f"--{option} says how known pages are visited again; give --recrawl as well")
        return wiring
    if told.recrawl == "never":
        return wirings.with_settings(wiring, SCHEDULE, {"is_active": False}) if has_schedule else wiring
    policy, mean = _policy(told.recrawl) if told.recrawl else (None, None)
    if options.strategy == "random-walk":
        raise UsageError("a random walk comes back by itself; leave out --recrawl")
    if not has_schedule:
        assert policy is not None
        wiring = _scheduled(wiring, policy)
    elif policy is not None:
        wiring = msgspec.structs.replace(wiring, providers={**wiring.providers, POLICY: policy})
    wiring = _with_texts(wiring)
    settings = _settings(told, wiring.providers[POLICY], wiring.providers[SCHEDULE].settings, mean)
    # Levels are importance where the most important page of a host comes first.
    settings["weighs"] = any(plan.use == "priority" for plan in wiring.providers.values())
    if told.interval:
        try:
            IntervalRules(told.interval)
        except SettingError as error:
            raise UsageError(f"--{error}") from None
        settings["intervals"] = list(told.interval)
    return wirings.with_settings(wiring, SCHEDULE, settings)


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
    if name == "every" and time:
        every = _time(name, time)
        return ProviderPlan(name, settings={"every": every}), None
    if name == "adaptive":
        return ProviderPlan(name), _time(name, time) if time else None
    if told in _RULES:
        return ProviderPlan(told), None
    raise UsageError(
        f"--recrawl {told}: write adaptive, adaptive=TIME, every=TIME (as every=7d), {', '.join(_RULES)}, or never"
    )


def _time(name: str, told: str) -> float:
    """Seconds, as a person says them."""
    try:
        seconds = sheet.parse(told, "s")
    except ValueError as error:
        raise UsageError(f"--recrawl {name}=TIME: {error}") from None
    if seconds <= 0:
        raise UsageError(f"--recrawl {name}=TIME: the time is above 0")
    return seconds


def _settings(told: RecrawlOptions, policy: ProviderPlan, kept: Any, mean: float | None) -> dict[str, Any]:
    settings: dict[str, Any] = {"is_active": True}
    if mean is not None:
        settings["mean_interval"] = mean
    if told.recrawl_rate is not None:
        settings["rate"] = _share(told.recrawl_rate)
    for name in ("min_interval", "max_interval"):
        if (given := getattr(told, name)) is not None:
            settings[name] = given
    usual = RevisitSheet()
    least = settings.get("min_interval", kept.get("min_interval", usual.min_interval))
    most = settings.get("max_interval", kept.get("max_interval", usual.max_interval))
    every = policy.settings.get("every", mean)
    if every is not None:
        # Who says a time gets it, whatever the usual bounds are; bounds that are given too must leave room for it.
        least = settings["min_interval"] = min(every, least) if told.min_interval is None else least
        most = settings["max_interval"] = max(every, most) if told.max_interval is None else most
        if not least <= every <= most:
            raise UsageError(f"--recrawl {policy.use}=TIME: the time is not between --min-interval and --max-interval")
    if least > most:
        raise UsageError("--min-interval is longer than --max-interval")
    return settings


def _share(told: str) -> float:
    """A share of the requests, as `20%` or `0.2`."""
    try:
        share = sheet.parse(told.removesuffix("%"), "") / (100 if told.endswith("%") else 1)
    except ValueError:
        raise UsageError(f"--recrawl-rate {told}: write a share, as 20%") from None
    if not 0 < share <= 1:
        raise UsageError(f"--recrawl-rate {told}: a share is above 0 and at most 100%")
    return share


def _scheduled(wiring: Wiring, policy: ProviderPlan) -> Wiring:
    """The wiring with ledger, schedule, policy, and the stage that compares."""
    frontier = next((plan for plan in wiring.components.values() if plan.use == "frontier"), None)
    if frontier is None:
        raise WiringError(f"{wiring.source}: no component uses 'frontier', so that nothing can be visited again")
    if taken := sorted({LEDGER, SCHEDULE, POLICY, TEXTS} & wiring.providers.keys()):
        raise WiringError(f"{wiring.source}: {', '.join(taken)}: --recrawl needs this name; choose another one")
    ledger = frontier.providers["ledger"]
    wiring, is_home = behind_process(
        wiring, STAGE, "compared-with-before", ComponentPlan(use=STAGE, providers={"pages": SCHEDULE, "texts": TEXTS})
    )
    if not is_home:
        raise WiringError(f"{wiring.source}: no stage behind 'process' runs in the main process; --recrawl needs one")
    components = dict(wiring.components)
    for name, plan in components.items():
        if plan.use in ("frontier", "commit"):
            changed: dict[str, Any] = {**plan.providers, "ledger": LEDGER}
            if plan.use == "frontier":
                changed["revisits"] = {"due": [SCHEDULE]}
            components[name] = msgspec.structs.replace(plan, providers=changed)
    providers = {
        POLICY: policy,
        SCHEDULE: ProviderPlan("revisits", {"ledger": ledger, "store": "ledger", "policy": POLICY}),
        TEXTS: ProviderPlan("compared-texts"),
        LEDGER: ProviderPlan("revisit-ledger", {"behind": ledger, "revisits": SCHEDULE}),
    }
    return msgspec.structs.replace(wiring, providers={**wiring.providers, **providers}, components=components)
