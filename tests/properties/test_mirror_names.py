"""Names of files in a mirror: whatever URLs there are, none leads out, and no two files share one."""

from pathlib import PurePosixPath
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from gossamer.analysis.mirror import MAX_NAME, as_reference, mirror_names, resolved_names
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical

PARTS = st.one_of(
    st.sampled_from(
        ["..", "%2e%2e", "..%2f..", "a", "A", "a.html", "index.html", "CON", "aux.txt", "~", "%00", "\\", "x" * 400]
    ),
    st.text(max_size=20),
)
PATHS = st.lists(PARTS, max_size=5).map("/".join)
QUERIES = st.one_of(st.just(""), st.text(max_size=30).map(lambda text: f"?{text}"))
HOSTS = st.sampled_from(["http://a.test", "https://a.test", "http://A.test:8080", "http://[::1]:1", "http://b.test"])
MIMES = st.sampled_from(["text/html", "text/css", "image/png", "application/octet-stream", "text/plain", ""])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, str]:
    found = {}
    for _ in range(draw(st.integers(1, 12))):
        try:
            found[canonical(f"{draw(HOSTS)}/{draw(PATHS)}{draw(QUERIES)}")] = draw(MIMES)
        except UnreadableUrl:
            continue
    return found


@given(documents())
def test_names_stay_inside_and_are_never_shared(wanted: dict[str, str]) -> None:
    names = mirror_names(wanted.items())
    assert set(names) == set(wanted)
    folded = [name.casefold() for name in names.values()]
    assert len(set(folded)) == len(folded)
    folders = {parent.as_posix() for name in folded for parent in PurePosixPath(name).parents}
    assert not folders & set(folded), "a file is where a folder has to be"
    for name in names.values():
        parts = name.split("/")
        assert len(parts) >= 2
        assert len(name.encode()) <= MAX_NAME + 20
        assert all(part and not part.startswith(".") and len(part.encode()) <= 200 for part in parts)
        assert not any(one in name for one in '\0\\<>:"|?*\n')
        assert not any(part.endswith((".", " ")) for part in parts)


@given(documents())
def test_a_reference_leads_from_each_file_to_each(wanted: dict[str, str]) -> None:
    names = list(mirror_names(wanted.items()).values())
    for source in names:
        for target in names:
            reference = as_reference(source, target)
            at = list(PurePosixPath(source).parent.parts)
            for part in reference.split("/"):
                if part == "..":
                    at.pop()
                else:
                    at.append(unquote(part))
            assert "/".join(at) == target


def test_names_say_what_they_are() -> None:
    wanted = {
        "http://a.test/": "text/html",
        "http://a.test/docs": "text/html",
        "http://a.test/docs/": "text/html",
        "http://a.test/p.php?x=1": "text/html",
        "http://a.test/style?v=2": "text/css",
        "http://a.test/s.css?v=2": "text/css",
        "https://a.test/": "text/html",
    }
    names = mirror_names(wanted.items())
    assert names.pop("https://a.test/").startswith("a.test/index~"), "http has the name already"
    assert names == {
        "http://a.test/": "a.test/index.html",
        "http://a.test/docs": "a.test/docs.html",
        "http://a.test/docs/": "a.test/docs/index.html",
        "http://a.test/p.php?x=1": "a.test/p.php@x=1.html",
        "http://a.test/style?v=2": "a.test/style@v=2.css",
        "http://a.test/s.css?v=2": "a.test/s@v=2.css",
    }


def test_a_url_that_redirects_is_the_file_of_where_it_leads() -> None:
    names = {"http://a.test/x": "a.test/x.html"}
    redirects = {
        "http://a.test/1": "http://a.test/2",
        "http://a.test/2": "http://a.test/x",
        "http://a.test/l": "http://a.test/l",
    }
    assert resolved_names(names, redirects) == {
        "http://a.test/x": "a.test/x.html",
        "http://a.test/1": "a.test/x.html",
        "http://a.test/2": "a.test/x.html",
    }


def test_text_that_is_called_like_markup_is_no_markup() -> None:
    url = "http://a.test/b.html"
    assert mirror_names([(url, "text/plain")])[url].endswith("b.html.txt")
    assert mirror_names([(url, "text/html")])[url].endswith("b.html")
