"""Actions of a browser: which can wait with a request."""

import pytest

from gossamer.values.errors import UsageError
from gossamer.values.request import Request
from gossamer.values.request_identity import MOST_ACTIONS, Action


def test_a_request_with_actions_is_rendered_and_known_by_its_url() -> None:
    asked = Request("http://h.test/", actions=[Action.scroll(), Action.click("#more")]).found.request
    assert asked is not None and (asked.render, asked.mark) == (True, "")
    assert [one.do for one in asked.actions] == ["scroll", "click"]
    left = Request("http://h.test/", actions=[Action.scroll()], render=False).found.request
    assert left is not None and left.render is False
    assert Request("http://h.test/").found.request is None


@pytest.mark.parametrize(("actions", "said"), [
    ([Action.click("")], "needs a CSS selector"),
    ([Action.scroll(0)], "times"),
    ([Action.wait(seconds=1e9)], "60 s at the most"),
    ([Action.fill("input", "x" * 9_000)], "characters"),
    ([Action.scroll()] * (MOST_ACTIONS + 1), "can be done on a page"),
    ([{"do": "scroll"}], "write gossamer.Action"),
])  # fmt: skip
def test_actions_that_cannot_be_done_are_refused_where_they_are_written(actions: list[Action], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Request("http://h.test/", actions=actions)
