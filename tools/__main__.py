"""`./gossamer dev VERB`: finds the chore and hands it the rest of the line.

Two tables say what there is: chores (:mod:`tools.chores`) and campaigns (:mod:`tools.killing`).
"""

import difflib
import importlib
import sys

from tools.chores import VERBS
from tools.killing import CAMPAIGNS
from tools.killing import main as campaign


def verbs() -> dict[str, str]:
    """Each verb, and its help."""
    return {verb: text for verb, (_, text) in VERBS.items()} | {verb: one.text for verb, one in CAMPAIGNS.items()}


def main(arguments: list[str]) -> int:
    known = verbs()
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        width = max(map(len, known))
        lines = [f"  {verb:<{width}}  {text}" for verb, text in sorted(known.items())]
        print("\n".join(["usage: ./gossamer dev VERB [ARGUMENT...]", *lines]))
        return 0
    verb, *rest = arguments
    if verb not in known:
        near = difflib.get_close_matches(verb, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}."
        print(f"gossamer dev: there is no {verb!r}; {hint}", file=sys.stderr)
        return 2
    if verb in CAMPAIGNS:
        return campaign(verb, rest)
    module, _, function = VERBS[verb][0].partition(":")
    place = module if "." in module else f"tools.chores.{module}"
    return int(getattr(importlib.import_module(place), function)(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
