"""What commands share that say one line for each URL: where URLs come from, and what may stand in a line."""

import sys
from collections.abc import Iterator


def given_urls(urls: tuple[str, ...]) -> Iterator[str]:
    """The URLs of a command line, in order; for `-`, and without any, those of standard input as they come in."""
    for url in urls or ("-",):
        if url == "-":
            yield from filter(None, (line.decode("utf-8", "replace").strip() for line in sys.stdin.buffer))
        else:
            yield url


def shown(text: str) -> str:
    """Without control characters: neither a URL nor a rule can forge a line, or speak to the terminal (fault 70)."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
