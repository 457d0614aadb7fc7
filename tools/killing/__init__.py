"""Campaigns: chores that kill, steer and signal crawls again and again, judged by their web's own log (docs/design/kills.md).

Place in the flow: `./gossamer dev VERB` finds the verbs of :data:`CAMPAIGNS` here; each is played by a module of this package, a
function of `(folder, say, *, seed, ...)`, whose keywords are the options. All take `--seed`, from which webs, moments and ways
follow, `--folder`, where everything goes, and `--json`. :mod:`site` is the web and the command that crawls it, :mod:`judging`
holds what was seen against what must hold.
"""

import argparse
import importlib
import inspect
import json
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

Say = Callable[[str], None]


class Told(msgspec.Struct):
    figures: dict[str, Any] = msgspec.field(default_factory=lambda: defaultdict(int))
    wrong: list[str] = []
    """The promises that did not hold, in words."""
    faults: dict[str, Counter[str]] = msgspec.field(default_factory=lambda: defaultdict(Counter))
    """Kind -> where -> how many."""

    def wrong_of(self, breaches: Mapping[str, Sequence[str]], where: str = "") -> None:
        """Add what a judge found, by invariant."""
        self.wrong += [f"{where}{name}: {text}" for name, texts in breaches.items() for text in texts]

    def table(self) -> list[str]:
        """The faults by kind, in Markdown: figures of several runs can be added up."""
        places = sorted({place for counts in self.faults.values() for place in counts})
        rows = [
            [kind, *(str(counts[place]) for place in places), str(counts.total())]
            for kind, counts in self.faults.items()
        ]
        lines = [["fault", *places, "all"], ["---"] * (len(places) + 2), *sorted(rows)]
        return [f"| {' | '.join(line)} |" for line in lines] if rows else []


class Campaign(NamedTuple):
    place: str
    """Module, and function where it is not `run`."""
    text: str
    """Its help, which names its main options."""
    options: Mapping[str, str]
    """Option -> what it is; its default is that of the keyword of `run`."""
    proved: str
    """The claim that holds where nothing was wrong."""


_KILLS = {"kills": "how many kills"}
CAMPAIGNS = {
    "kill-loop": Campaign(
        "loop",
        "Kill a crawl again and again, and prove that nothing was lost: `kill-loop [--kills N] [--seed S]`.",
        {**_KILLS, "concurrency": "requests in flight", "pages": "pages of a web"},
        "nothing is lost",
    ),
    "kill-agents": Campaign(
        "agents",
        "Kill agents, masters and supervisors of one crawl, and prove that nothing was lost.",
        {
            "kills": "of agents",
            "supervisors": "kills of supervisors",
            "agents": "how many agents crawl",
            "masters": "how many divide the crawl; without any, the ring does",
            "master-kills": "of masters",
            "concurrency": "requests in flight of all agents",
            "pages": "pages of the web",
            "delay": "seconds between two requests to a host",
        },
        "nothing is lost, no host is asked too early",
    ),
    "lose-masters": Campaign(
        "agents:lose",
        "Take masters and agents away for good, one from each crawl, and prove that nothing was lost.",
        {
            "masters": "crawls that lose one of two masters",
            "agents": "crawls that lose one of two agents",
            "pages": "pages of each web",
        },
        "each crawl has all pages",
    ),
    "steered": Campaign(
        "steered",
        "Steer crawls of several agents at random moments, and prove that each ends as it should.",
        {"crawls": "how many crawls"},
        "each crawl has every page once",
    ),
    "signals": Campaign(
        "steered:disturb",
        "Signal crawls at random moments, close their readers, and prove that each ends well: `signals [--times N] [--seed S]`.",
        {"times": "how many runs are disturbed: a quarter of an hour"},
        "each ended well",
    ),
    "kill-machines": Campaign(
        "machines",
        "Kill, suspend and cut off machines whose agents have joined a crawl, in network namespaces of Linux (as root).",
        {"faults": "how many, up to eight in each crawl"},
        "nothing is lost, no host is asked too early, and no machine goes on whose agent is elsewhere",
    ),
    "kill-mobile": Campaign(
        "runtimes:run_crawls",
        "Kill a crawl that sends crawlers, its runtime, and the line between them, and prove that nothing is lost.",
        _KILLS,
        "nothing lost, nothing twice",
    ),
    "kill-ray": Campaign(
        "ray",
        "Kill and suspend nodes, workers and supervisors of crawls on Ray (as root; `dev ray` makes its environment).",
        {"faults": "how many, up to eight in each crawl"},
        "nothing is lost, no host is asked too early, and no agent of a lost node goes on",
    ),
    "kill-recrawl": Campaign(
        "spiders:come_back",
        "Kill a crawl that comes back to its pages, and prove that none comes too soon and none is forgotten.",
        _KILLS,
        "no page too soon, none forgotten",
    ),
    "kill-rendering": Campaign(
        "programs:render",
        "Kill a crawl that renders pages, its browser, and the guard between, in mid-page, and prove that nothing is lost.",
        _KILLS,
        "every page once, with its own data",
    ),
    "kill-runtimes": Campaign(
        "runtimes",
        "Kill a runtime while crawlers are at it, and prove that home gets what a clean run brings: `kill-runtimes [--kills N]`.",
        _KILLS,
        "as a clean run, nothing twice",
    ),
    "kill-spider": Campaign(
        "spiders",
        "Kill a spider with forms again and again, and prove that its items are those of a clean run: `kill-spider [--kills N]`.",
        {**_KILLS, "sessions": "sessions that take turns; 0 is one alone"},
        "as a clean run",
    ),
    "kill-stores": Campaign(
        "stores",
        "Take machines, agents and the store of crawls away, or let stores and clocks fail, and prove that nothing is lost.",
        {"faults": "how many, up to four in each crawl"},
        "nothing is lost, no host is asked too early, and no process that was taken over publishes anything",
    ),
    "kill-triples": Campaign(
        "programs",
        "Kill a crawl and its triple stores again and again, and prove that they hold what the pages say.",
        _KILLS,
        "table and stores hold what the pages say",
    ),
}


def main(verb: str, arguments: Sequence[str]) -> int:
    """Play a campaign, print what came of it; the exit status."""
    campaign = CAMPAIGNS[verb]
    module, _, function = campaign.place.partition(":")
    run = getattr(importlib.import_module(f"tools.killing.{module}"), function or "run")
    keywords = inspect.signature(run).parameters
    parser = argparse.ArgumentParser(prog=f"gossamer dev {verb}", description=campaign.text)
    for name, text in campaign.options.items():
        default = keywords[name.replace("-", "_")].default
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{text} (default {default})")
    parser.add_argument("--seed", type=int, default=1, help="webs, moments and ways follow from it (default 1)")
    parser.add_argument("--folder", type=Path, help="where everything goes; default: a temporary folder")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, nothing else")
    given = vars(parser.parse_args(arguments))
    place, is_json = given.pop("folder"), given.pop("json")
    # A chore that is ended must not leave a crawl behind, whose processes live in sessions of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="gossamer-kill-") as temporary:
        folder = place or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        told: Told = run(folder, lambda line: None if is_json else print(line, flush=True), **given)
    if is_json:
        print(json.dumps({**told.figures, "faults by kind": told.faults, "told": told.wrong}, default=str))
    else:
        figures = [f"{name}: {value}" for name, value in told.figures.items()]
        print("\n".join([*told.wrong, *told.table(), *figures, "WRONG" if told.wrong else campaign.proved]))
    return 1 if told.wrong else 0
