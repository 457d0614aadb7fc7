"""`./gossamer dev VERB`: finds the chore and hands it the rest of the line.

A chore is one module in tools/chores/ with a docstring whose first line is its help, and `main(arguments) -> int`;
its verb is its file name. Adding a file adds a verb. Campaigns share a table (:mod:`tools.killing.campaigns`), and so do
verbs that run certain tests (:mod:`tools.chores.test`).
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys
from collections.abc import Callable
from functools import partial

from tools import chores
from tools.chores import test
from tools.killing.campaigns import CAMPAIGNS
from tools.killing.campaigns import main as campaign


def verbs() -> dict[str, str]:
    """Each verb, and the module that serves it alone; empty for one that shares its module."""
    own = {module.name.replace("_", "-"): module.name for module in pkgutil.iter_modules(chores.__path__)}
    return own | dict.fromkeys([*CAMPAIGNS, *test.VERBS], "")


def summary(verb: str, module: str) -> str:
    if verb in CAMPAIGNS:
        return CAMPAIGNS[verb].text
    if verb in test.VERBS:
        return test.VERBS[verb][0]
    documentation = importlib.import_module(f"tools.chores.{module}").__doc__ or ""
    return documentation.strip().partition("\n")[0]


def served_by(verb: str, module: str) -> Callable[[list[str]], int]:
    """The function that does a chore."""
    if verb in CAMPAIGNS:
        return partial(campaign, verb)
    if verb in test.VERBS:
        return lambda rest: test.main([*test.VERBS[verb][1], *rest])
    main: Callable[[list[str]], int] = importlib.import_module(f"tools.chores.{module}").main
    return main


def overview() -> str:
    known = verbs()
    width = max(map(len, known))
    lines = [f"  {verb:<{width}}  {summary(verb, module)}" for verb, module in sorted(known.items())]
    return "\n".join(["usage: ./gossamer dev VERB [ARGUMENT...]", *lines])


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    verb, *rest = arguments
    known = verbs()
    if verb not in known:
        near = difflib.get_close_matches(verb, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}."
        print(f"gossamer dev: there is no {verb!r}; {hint}", file=sys.stderr)
        return 2
    return int(served_by(verb, known[verb])(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
