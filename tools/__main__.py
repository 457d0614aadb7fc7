"""`./gossamer dev VERB`: finds the chore and hands it the rest of the line.

A chore is one module in tools/chores/ with a docstring whose first line is its help, and `main(arguments) -> int`;
its verb is its file name. Adding a file adds a verb.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import sys

from tools import chores


def verbs() -> dict[str, str]:
    """Each verb and the module that serves it."""
    return {module.name.replace("_", "-"): module.name for module in pkgutil.iter_modules(chores.__path__)}


def summary(module: str) -> str:
    documentation = importlib.import_module(f"tools.chores.{module}").__doc__ or ""
    return documentation.strip().partition("\n")[0]


def overview() -> str:
    known = verbs()
    width = max(map(len, known))
    lines = [f"  {verb:<{width}}  {summary(module)}" for verb, module in sorted(known.items())]
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
    return int(importlib.import_module(f"tools.chores.{known[verb]}").main(rest))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
