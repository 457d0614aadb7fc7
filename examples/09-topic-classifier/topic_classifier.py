"""A relevance of one's own: a classifier of scikit-learn, trained on folders of pages, tells a crawl what to go after.

    gossamer crawl https://example.org/ --relevance topic-classifier --set relevance.relevant=my-topic \
        --set relevance.others=anything-else -o focused --contact me@example.org
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from gossamer.documents.text import main_text
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import LinkWords, PageWords

#: Bytes of a file that are read.
MOST = 1 << 20


class ClassifierSheet(Sheet, frozen=True):
    """Settings of :class:`TopicClassifier`."""

    relevant: Annotated[str, setting("Learn what is relevant from the files (HTML or text) in this folder.")] = (
        "relevant"
    )
    others: Annotated[str, setting("Learn what is not from the files in this folder.")] = "others"


class TopicClassifier(Provider[ClassifierSheet]):
    """Logistic regression over hashed words. Contract: `relevance.Relevance`. It is trained when the crawl starts."""

    def __init__(self, sheet: ClassifierSheet | None = None) -> None:
        super().__init__(sheet)
        self._model: Pipeline | None = None

    async def start(self) -> None:
        """Train."""
        relevant, others = texts_of(self.sheet.relevant), texts_of(self.sheet.others)
        words = HashingVectorizer(n_features=1 << 18, alternate_sign=False, stop_words="english")
        self._model = make_pipeline(words, LogisticRegression(C=100.0, class_weight="balanced"))
        self._model.fit([*relevant, *others], [1] * len(relevant) + [0] * len(others))

    def page(self, page: PageWords) -> float:
        """The probability that a page is relevant."""
        return self._scores([f"{page.title}\n{page.text}"])[0]

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """Half what the words of a link say, half what its page is worth."""
        if not links:
            return []
        own = self._scores([f"{link.anchor} {link.around} {words_of(link.url)}" for link in links])
        return [(one + score) / 2 for one in own]

    def _scores(self, texts: Sequence[str]) -> list[float]:
        assert self._model is not None
        return [float(row[1]) for row in self._model.predict_proba(texts)]


def words_of(url: str) -> str:
    """The words of an address."""
    return "".join(character if character.isalnum() else " " for character in url.partition("://")[2])


def texts_of(folder: str) -> list[str]:
    """What the files of a folder say.

    Raises:
        SettingError: it has none.
    """
    found = []
    for path in sorted(Path(folder).glob("*")):
        if path.is_file():
            with path.open("rb") as file:
                text = file.read(MOST).decode("utf-8", "replace")
            found.append(main_text(text.encode()) if "<" in text[:2_000] else text)
    if not any(found):
        raise SettingError(f"{folder}: no file here to learn from; name a folder of example pages")
    return found
