"""Actions of a browser on a page, as data: scroll, load more, accept cookies, click, fill in, wait.

Place in the flow: a spider gives them with a request (`gossamer.Request(url, actions=[...])`), or an option with every page that is
rendered; they wait in the ledger with the request, stand in the row of the page, and :mod:`gossamer.browser.acting` does them one
after the other when the page has come to rest.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from gossamer.values.errors import UsageError

#: Actions of one request, repetitions of one action, seconds of the page's own time, and characters of a selector or text: a page
#: with 100 actions of a second takes as long as a person would look at it.
MOST_ACTIONS: Final = 100
MOST_TIMES: Final = 100
MOST_SECONDS: Final = 60.0
MOST_TEXT: Final = 8_192

Deed = Literal["scroll", "more", "cookies", "click", "fill", "wait"]
"""The kinds of actions."""


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action of the browser on a page. Make one by `Action.scroll()` and the other functions of this class."""

    do: Deed
    at: str = ""
    """A CSS selector of the element; the first one that can be seen is taken."""
    text: str = ""
    """The text that is filled in."""
    times: int = 1
    """How often it is done at the most."""
    seconds: float = 0.0
    """How long the page gets for it, by its own clock."""

    @classmethod
    def scroll(cls, times: int = 10) -> "Action":
        """Scroll to the end of the page, so often at the most, as long as it grows."""
        return cls("scroll", times=times)

    @classmethod
    def more(cls, selector: str = "", times: int = 20) -> "Action":
        """Click the button that loads more, so often at the most, as long as it is there. Without a selector, it is known by
        its words, as `Load more`."""
        return cls("more", selector, times=times)

    @classmethod
    def cookies(cls) -> "Action":
        """Accept cookies: click the button of the consent managers that many sites use, or one with such words in a notice."""
        return cls("cookies")

    @classmethod
    def click(cls, selector: str) -> "Action":
        return cls("click", selector)

    @classmethod
    def fill(cls, selector: str, text: str) -> "Action":
        """Fill a text into a field, or choose an option by its value. Fields for passwords are left alone: requests wait in the
        ledger, where no password may be."""
        return cls("fill", selector, text)

    @classmethod
    def wait(cls, selector: str = "", seconds: float = 10.0) -> "Action":
        """Wait until there is such an element, for so many seconds at the most; without a selector, for so many seconds. They
        are seconds of the page's own clock, and cost next to nothing."""
        return cls("wait", selector, seconds=seconds)


def checked(actions: Iterable[Action]) -> tuple[Action, ...]:
    """The actions of a request. Raises UsageError: one cannot be done, or there are too many."""
    made = tuple(actions)
    if len(made) > MOST_ACTIONS:
        raise UsageError(f"a request has {len(made)} actions; {MOST_ACTIONS} can be done on a page")
    for number, one in enumerate(made, 1):
        given: object = one
        if not isinstance(given, Action):
            raise UsageError(
                f"action {number} of a request is {one!r:.80}; write gossamer.Action.click(SELECTOR), for instance"
            )
        if one.do in ("click", "fill") and not one.at:
            raise UsageError(f"action {number} of a request, {one.do!r}, needs a CSS selector")
        if not 1 <= one.times <= MOST_TIMES or not 0 <= one.seconds <= MOST_SECONDS:
            raise UsageError(
                f"action {number} of a request, {one.do!r}: from 1 to {MOST_TIMES} times, and {MOST_SECONDS:g} s at the most"
            )
        if len(one.at) + len(one.text) > MOST_TEXT:
            raise UsageError(
                f"action {number} of a request, {one.do!r}: selector and text have {MOST_TEXT:,} characters at the most"
            )
    return made
