"""Verdicts on URLs, remembered: the pages of a site repeat their links, and a look-up costs a tenth of a judgement."""

from collections.abc import Callable

#: URLs that are remembered; then all are forgotten, which costs each one more look. About 2 MB.
MOST = 8_192


class RememberedVerdicts(dict[str, str]):
    """URL -> verdict. Ask by `remembered[url]`: what is not known yet is judged."""

    def __init__(self, judge: Callable[[str], str], most: int = MOST) -> None:
        super().__init__()
        self._judge = judge
        self._most = most

    def __missing__(self, url: str) -> str:
        if len(self) >= self._most:
            self.clear()
        verdict = self[url] = self._judge(url)
        return verdict
