"""The campaigns: chores that kill, steer and signal crawls again and again, and prove that each ends as it should.

Place in the flow: `./gossamer dev VERB` finds the verbs of :data:`CAMPAIGNS` here; the other modules of this package play them. All
take `--seed`, from which webs, moments and ways follow, `--folder`, where everything goes and stays, and `--json`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Say = Callable[[str], None]


class Outcome(NamedTuple):
    """What a campaign found."""

    wrong: Sequence[str]
    """What did not hold, in words."""
    figures: Mapping[str, Any]
    told: str = ""
    """The figures in one line, where a person reads them better so; ends in what was proved."""


class Campaign(NamedTuple):
    """A chore."""

    text: str
    """Its help, which names its main options."""
    options: Mapping[str, tuple[Any, str]]
    """Option -> its default, and what it is."""
    run: Callable[[Any, Path, Say], Outcome]


def _breaches(found: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{name}: {text}" for name, texts in found.items() for text in texts]


def _loop(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import loop

    report = loop.run(
        given.kills, given.seed, given.concurrency, given.pages, folder, say, keep=given.folder is not None
    )
    return Outcome(loop.breaches_of(report), report.figures())


def _agents(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import agents
    from tools.killing.site import Round

    round_ = Round(given.seed, given.pages, given.delay, None, given.concurrency)
    kills, of_masters = (given.kills, given.supervisors), (given.masters, given.master_kills)
    report = agents.run(round_, given.agents, kills, folder, of_masters)
    return Outcome(_breaches(report.judgement.breaches), report.figures())


def _losing(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import losing
    from tools.killing.site import Round

    wrong, figures = list[str](), dict[str, Any]()
    for what, times in (("master", given.masters), ("agent", given.agents)):
        own = folder / what
        own.mkdir()
        report = losing.run(Round(given.seed, given.pages, 0.25, None, 32), what, times, own)
        wrong += _breaches(report.judgement.breaches)
        figures[what] = report.figures()
        say(f"lost: {what}")
    return Outcome(wrong, figures)


def _steered(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import steered

    report = steered.run(given.crawls, folder, given.seed, say)
    acts = ", ".join(f"{times} {name}" for name, times in report.acts.most_common())
    refused = [f"refused {times} times: {told}" for told, times in report.refused.most_common()]
    lines = [f"{report.crawls} crawls in {report.seconds:.0f} s; acts: {acts}", *refused]
    figures = {"crawls": report.crawls, "acts": dict(report.acts), "refused": dict(report.refused)}
    return Outcome(report.breaches, figures, "\n".join([*lines, f"breaches: {len(report.breaches)}"]))


def _signals(given: Any, folder: Path, say: Say) -> Outcome:
    import msgspec

    from tools.killing import signals

    report = signals.run(given.times, given.seed, folder, say)
    return Outcome(report.findings, msgspec.to_builtins(report))


def _mobile(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import mobile

    told = mobile.run(given.kills, folder, given.seed)
    line = f"{told.kills} kills, {told.of_runtime} of the runtime, {told.of_line} of the line, {told.crawls} crawls, "
    return _told(told, f"{line}{told.documents} documents", "nothing lost, nothing twice")


def _recrawls(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import recrawls

    told = recrawls.run(given.kills, folder, given.seed, given.recrawl)
    line = f"{told.kills} kills, {told.requests} requests, {told.again} pages again after a kill"
    return _told(told, line, "no page too soon, none forgotten")


def _runtimes(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import runtimes

    told = runtimes.run(given.kills, folder, given.seed)
    line = f"{told.kills} kills, {told.crawlers} crawlers in {told.batches} batches, {told.failed} calls broken off by kills, "
    return _told(told, f"{line}{told.broken} by home", "as a clean run, nothing twice")


def _spiders(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import spiders

    told = spiders.run(given.kills, folder, given.seed, sessions=given.sessions)
    line = f"{told.kills} kills, {told.log_ins} log-ins, {told.items} items, {told.interrupted} interrupted"
    return _told(told, line, "as a clean run")


def _triples(given: Any, folder: Path, say: Say) -> Outcome:
    from tools.killing import triples

    told = triples.run(given.kills, given.seed, folder)
    line = f"{told.kills} kills of crawls, {told.server_kills} of the store elsewhere, {told.rounds} rounds, {told.triples} triples"
    return _told(told, line, "all three hold what the pages say")


def _told(report: Any, line: str, proved: str) -> Outcome:
    figures = {name: value for name, value in vars_of(report).items() if name != "wrong"}
    return Outcome(report.wrong, figures, f"{line}: {'WRONG' if report.wrong else proved}")


def vars_of(report: Any) -> dict[str, Any]:
    """The fields of a report of any kind."""
    names = getattr(report, "__struct_fields__", None) or getattr(report, "_fields", None) or vars(report)
    return {name: getattr(report, name) for name in names}


_KILLS = "how many kills"
CAMPAIGNS = {
    "kill-loop": Campaign(
        "Kill a crawl again and again, and prove that nothing was lost: `kill-loop [--kills N] [--seed S]`.",
        {"kills": (50, _KILLS), "concurrency": (16, "requests in flight"), "pages": (4000, "pages of a web")},
        _loop,
    ),
    "kill-agents": Campaign(
        "Kill agents, masters and supervisors of one crawl, and prove that nothing was lost.",
        {
            "kills": (20, "of agents"),
            "supervisors": (5, "kills of supervisors"),
            "agents": (2, "how many agents crawl"),
            "masters": (0, "how many divide the crawl; without any, the ring does"),
            "master-kills": (0, "of masters"),
            "concurrency": (32, "requests in flight of all agents"),
            "pages": (5000, "pages of the web"),
            "delay": (0.25, "seconds between two requests to a host"),
        },
        _agents,
    ),
    "lose-masters": Campaign(
        "Take masters and agents away for good, one from each crawl, and prove that nothing was lost.",
        {
            "masters": (10, "crawls that lose one of two masters"),
            "agents": (10, "crawls that lose one of two agents"),
            "pages": (1000, "pages of each web"),
        },
        _losing,
    ),
    "steered": Campaign(
        "Steer crawls of several agents at random moments, and prove that each ends as it should.",
        {"crawls": (20, "how many crawls")},
        _steered,
    ),
    "signals": Campaign(
        "Signal crawls at random moments, close their readers, and prove that each ends well: `signals [--times N] [--seed S]`.",
        {"times": (200, "how many runs are disturbed: a quarter of an hour")},
        _signals,
    ),
    "kill-mobile": Campaign(
        "Kill a crawl that sends crawlers, its runtime, and the line between them, and prove that nothing is lost.",
        {"kills": (30, _KILLS)},
        _mobile,
    ),
    "kill-recrawl": Campaign(
        "Kill a crawl that comes back to its pages, and prove that none comes too soon and none is forgotten.",
        {"kills": (30, _KILLS), "recrawl": ("adaptive=5s", "the policy")},
        _recrawls,
    ),
    "kill-runtimes": Campaign(
        "Kill a runtime while crawlers are at it, and prove that home gets what a clean run brings: `kill-runtimes [--kills N]`.",
        {"kills": (30, _KILLS)},
        _runtimes,
    ),
    "kill-spider": Campaign(
        "Kill a spider with forms again and again, and prove that its items are those of a clean run: `kill-spider [--kills N]`.",
        {"kills": (50, _KILLS), "sessions": (0, "sessions that take turns; 0 is one alone")},
        _spiders,
    ),
    "kill-triples": Campaign(
        "Kill a crawl and its triple stores again and again, and prove that they hold what the pages say.",
        {"kills": (50, _KILLS)},
        _triples,
    ),
}


def main(verb: str, arguments: Sequence[str]) -> int:
    """Play a campaign, print what came of it; the exit status."""
    campaign = CAMPAIGNS[verb]
    parser = argparse.ArgumentParser(prog=f"gossamer dev {verb}", description=campaign.text)
    for name, (default, text) in campaign.options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{text} (default {default})")
    parser.add_argument("--seed", type=int, default=1, help="webs, moments and ways follow from it (default 1)")
    parser.add_argument("--folder", type=Path, help="where everything goes, and stays; default: a temporary folder")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, nothing else")
    given = parser.parse_args(arguments)
    # A chore that is ended must not leave a crawl behind, whose processes live in sessions of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcome = campaign.run(given, folder, lambda line: None if given.json else print(line, flush=True))
    wrong = [*outcome.wrong]
    if given.json:
        print(json.dumps({**outcome.figures, "told": wrong}, default=str))
    else:
        print("\n".join([*wrong, outcome.told or _lines(outcome.figures)]))
    return 1 if wrong else 0


def _lines(figures: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in figures.items())
