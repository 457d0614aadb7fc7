"""Files as a site: what is served, and attacks on what is not. The root has what careless owners leave in theirs."""

import os
import socket
import threading
from pathlib import Path

import pytest

from gossamer.mobile.contract import Withheld
from gossamer.mobile.sources.files import FileSource, forbidden
from gossamer.testing.fetching import HOSTILE_PATHS
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Response

SITE = "http://example.test"
SECRET = b"SECRET of the owner"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A document root beside things that are nobody's business."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "page.html").write_bytes(SECRET)
    root = tmp_path / "html"
    for name in ("docs/api", ".git/refs", "empty", "app", "shut", "ruled/below", "docs/.cache"):
        (root / name).mkdir(parents=True)
    pages = {
        "index.html": b"<title>Home</title><a href=docs/>docs</a>",
        "docs/index.htm": b"<title>Docs</title>",
        "docs/api/page.html": b"<title>API</title>",
        "docs/a b.html": b"<title>Blank</title>",
        "docs/data.JSON": b"{}",
        "docs/LICENSE": b"text",
    }
    hidden = (".env", ".git/config", ".htpasswd", "docs/.cache/page.html", "app/index.php", "app/config.php.bak")
    hidden += ("app/run.cgi", "app/old.php~", "app/view.JSP", "app/part.shtml", "shut/page.html", "closed.html")
    hidden += ("ruled/.htaccess", "ruled/page.html", "ruled/below/page.html", "empty/unlinked.html")
    for name, data in (*pages.items(), *((name, SECRET) for name in hidden)):
        (root / name).write_bytes(data)
    (root / "shut").chmod(0o700)
    (root / "closed.html").chmod(0o640)
    return root


def answer(root: Path, path: str, limit: int = 1 << 20, **more: bool) -> Response | Withheld:
    return FileSource(root, limit=limit, **more).answer(SITE + path)


def served(root: Path, path: str) -> Response:
    found = answer(root, path)
    assert isinstance(found, Response), found
    return found


def reason(root: Path, path: str) -> str:
    found = answer(root, path)
    assert isinstance(found, Withheld), found
    return found.reason


@pytest.mark.parametrize(
    ("path", "title", "mime"),
    [
        ("/", b"Home", "text/html"),
        ("/index.html?page=2", b"Home", "text/html"),
        ("/docs/", b"Docs", "text/html"),
        ("/docs/api/page.html#part", b"API", "text/html"),
        ("/docs/a%20b.html", b"Blank", "text/html"),
        ("/docs/data.JSON", b"{}", "application/json"),
        ("/docs/LICENSE", b"text", "application/octet-stream"),
    ],
)
def test_a_file_is_served_as_a_server_would_with_its_media_type(root: Path, path: str, title: bytes, mime: str) -> None:
    found = served(root, path)
    assert (found.outcome, found.status, found.mime) == (Outcome.OK, 200, mime)
    assert title in found.content
    assert found.header("last-modified").endswith(" GMT")


def test_a_directory_without_a_slash_is_redirected_to_the_one_with_it(root: Path) -> None:
    found = served(root, "/docs?x=1")
    assert (found.outcome, found.status) == (Outcome.REDIRECT, 301)
    assert found.header("location") == f"{SITE}/docs/?x=1"


@pytest.mark.parametrize("path", ["/none.html", "/docs/none/deeper", "/index.html/", "/index.html/more", "/docs/a%20c"])
def test_a_file_that_is_not_there_is_answered_with_404(root: Path, path: str) -> None:
    assert served(root, path).status == 404


@pytest.mark.parametrize(
    "path",
    ["/.env", "/.git/", "/.git/config", "/.git/refs/heads", "/.htpasswd", "/docs/.cache/page.html", "/%2eenv", "/.no"],
)
def test_nothing_whose_name_begins_with_a_dot_is_served_at_any_depth(root: Path, path: str) -> None:
    # Whether there is such a file makes no difference: a crawler cannot tell.
    assert reason(root, path) == "dotfile"


@pytest.mark.parametrize(
    "path",
    [
        "/app/index.php",
        "/app/config.php.bak",
        "/app/run.cgi",
        "/app/old.php~",
        "/app/view.JSP",
        "/app/part.shtml",
        "/app/",
    ],
)
def test_the_source_of_programs_is_never_served(root: Path, path: str) -> None:
    assert reason(root, path) == "server_side"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "c.php_old",
            "c.php-bak",
            "c.php,v",
            "c.php copy",
            "c.php copy 2",
            "c.jsp_",
            "c.php (1)",
            "c.php;1",
            "c.php.~1~",
        ),
        *("#c.php#", "c.php.", "c.php ", "c.php+", "c.php$", "c.php%", "c.php@", "c.php=", "c.php::$DATA", "c.PHP_OLD"),
        *(
            "c.phpold",
            "c.phpold2",
            "c.phpbackup2020",
            "c.phpdist",
            "c.php1",
            "c.php74",
            "c.phpbak",
            "c.jspx.orig",
            "c.php_old.txt",
            "c.asp-2020.html",
            "c.pl,v",
        ),
        *(
            "c.pyold",
            "c.plbak",
            "c.shbackup2020",
            "c.incold",
            "c.classold",
            "c.py3",
            "c.phpx",
            "c.phpdisabled",
            "c.aspold.zip",
        ),
        *("c.class_old", "c.inc copy", "c.php\u00a0", "c.php\u2013old", "c._php", "c.cgi'", "web.config-bak"),
    ],
)
def test_a_copy_of_a_program_is_its_source_whatever_was_put_behind_its_name(name: str) -> None:
    found = forbidden(name)
    assert found is not None and found.reason == "server_side"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "page.html",
            "plan.do-not-delete.pdf",
            "v1.action-plan.pdf",
            "map.shx",
            "map.shp",
            "x.docx",
            "x.plist",
            "guide.pm2.html",
            "notes.dox",
            "a.phone.html",
            "php",
            "php.html",
        ),
        *(
            "php-guide.html",
            "class",
            "my.class-2024.html",
            "x.aspirin.html",
            "report.2024-01-02.pdf",
            "a.b.c",
            "x.",
            "x..y",
        ),
    ],
)
def test_a_name_that_only_looks_a_little_like_a_program_is_served(name: str) -> None:
    assert forbidden(name) is None


@pytest.mark.parametrize("path", ["/closed.html", "/shut/page.html", "/shut/none.html", "/shut/"])
def test_only_what_everybody_may_read_is_served(root: Path, path: str) -> None:
    assert reason(root, path) == "private"


def test_a_directory_with_htaccess_is_served_only_if_the_owner_says_so(root: Path) -> None:
    for path in ("/ruled/page.html", "/ruled/below/page.html", "/ruled/", "/ruled/none.html"):
        assert reason(root, path) == "htaccess"
    found = answer(root, "/ruled/page.html", ignores_htaccess=True)
    assert isinstance(found, Response) and found.outcome is Outcome.OK
    hidden = answer(root, "/ruled/.htaccess", ignores_htaccess=True)
    assert isinstance(hidden, Withheld) and hidden.reason == "dotfile"


def test_a_root_with_htaccess_is_closed_as_a_whole(root: Path) -> None:
    (root / ".htaccess").write_text("Require all denied")
    assert reason(root, "/") == reason(root, "/docs/api/page.html") == "htaccess"


def test_a_directory_is_never_listed(root: Path) -> None:
    assert reason(root, "/empty/") == "no_index"
    assert served(root, "/empty").status == 301


@pytest.mark.parametrize(
    "target",
    [
        "../secret.txt",
        "../elsewhere/page.html",
        "docs/../../secret.txt",
        "docs/api/../../../secret.txt",
        "/etc/passwd",
        "ABS",
    ],
)
def test_a_symbolic_link_out_of_the_root_is_never_followed(root: Path, target: str) -> None:
    (root / "link.txt").symlink_to(str(root.parent / "secret.txt") if target == "ABS" else target)
    assert reason(root, "/link.txt") == "outside"


def test_a_link_to_a_directory_outside_leads_to_nothing_below_it(root: Path) -> None:
    (root / "door").symlink_to("../elsewhere")
    (root / "chain").symlink_to("door")
    (root / "absolute").symlink_to(f"{root}/../elsewhere")
    (root / "sibling").symlink_to(f"{root}-other")  # begins like the root, and is another directory
    Path(f"{root}-other").mkdir()
    for path in ("/door/page.html", "/chain/page.html", "/absolute/page.html", "/sibling/", "/door"):
        assert reason(root, path) == "outside"


def test_a_symbolic_link_that_stays_in_the_root_is_served_as_its_target(root: Path) -> None:
    (root / "docs" / "latest").symlink_to("api")
    (root / "docs" / "up").symlink_to("../docs/api/page.html")
    (root / "docs" / "whole").symlink_to(root / "docs" / "api")
    (root / "top").symlink_to(root)
    for path in ("/docs/latest/page.html", "/docs/up", "/docs/whole/page.html", "/top/docs/api/page.html"):
        assert b"API" in served(root, path).content


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (".git/config", "dotfile"),
        ("app/index.php", "server_side"),
        ("shut/page.html", "private"),
        ("ruled/page.html", "htaccess"),
    ],
)
def test_a_symbolic_link_opens_nothing_that_its_target_closes(root: Path, target: str, why: str) -> None:
    (root / "innocent.html").symlink_to(target)
    assert reason(root, "/innocent.html") == why


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "self").symlink_to("self/self")
    assert reason(root, "/one") == reason(root, "/self/page.html") == "outside"


def test_pipes_sockets_and_devices_are_never_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.html")  # an open one would wait for a writer for ever
    monkeypatch.chdir(root)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.html")
    for name in ("pipe.html", "socket.html"):
        (root / name).chmod(0o666)
        assert reason(root, f"/{name}") == "special"


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_no_path_of_a_stranger_leads_out_of_the_root(root: Path, path: str) -> None:
    (root / "..up").mkdir()
    found = answer(root, path)
    if isinstance(found, Response):
        assert SECRET not in found.content and b"root:" not in found.content
    else:
        assert found.reason


@pytest.mark.parametrize(
    "path",
    [
        *("/%2e%2e/secret.txt", "/docs/%2e%2e/%2e%2e/secret.txt", "/..%2fsecret.txt", "/docs%2fapi%2fpage.html"),
        *(
            "/..%5csecret.txt",
            "/docs%5cindex.htm",
            "/index.html%00",
            "/%00",
            "/a%0ab",
            "//secret.txt",
            "/docs//index.htm",
        ),
        *("/" + "a" * 256, "/a" * 65),
    ],
)
def test_a_path_that_names_no_place_below_the_root_is_refused_by_name(root: Path, path: str) -> None:
    assert reason(root, path) == "unsafe_path"


def test_a_name_is_decoded_once(root: Path) -> None:
    assert served(root, "/%252e%252e%252fsecret.txt").status == 404


def test_a_name_that_is_no_utf8_is_a_name(root: Path) -> None:
    try:
        (root / os.fsdecode(b"caf\xe9.html")).write_bytes(b"<title>Latin</title>")
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    assert b"Latin" in served(root, "/caf%E9.html").content


def test_a_large_file_is_cut_at_the_limit_and_says_so(root: Path) -> None:
    with (root / "large.html").open("wb") as file:
        file.truncate(1 << 30)  # a hole: a gigabyte that no disk holds
    found = answer(root, "/large.html", limit=3 << 20)
    assert isinstance(found, Response)
    assert (found.outcome, found.cut, len(found.document)) == (Outcome.TRUNCATED, "length", 3 << 20)
    assert not isinstance(found.document, bytes), "what is larger than a megabyte waits on the disk"


def test_a_file_of_exactly_the_limit_is_whole(root: Path) -> None:
    (root / "exact.html").write_bytes(b"x" * 100)
    found = answer(root, "/exact.html", limit=100)
    assert isinstance(found, Response) and (found.outcome, found.cut) == (Outcome.OK, "")


def test_nothing_stays_open_after_an_answer(root: Path) -> None:
    source = FileSource(root, limit=100)
    before = sorted(Path("/dev/fd").iterdir())
    for path in (
        "/",
        "/docs/api/page.html",
        "/.env",
        "/docs",
        "/none",
        "/closed.html",
        "/shut/page.html",
        "/ruled/page.html",
    ):
        source.answer(SITE + path)
    assert sorted(Path("/dev/fd").iterdir()) == before


def test_a_root_that_was_replaced_is_served_as_it_is(root: Path) -> None:
    current = root.parent / "current"
    current.symlink_to(root)
    source = FileSource(current, limit=100)
    release = root.parent / "release-2"
    release.mkdir()
    (release / "index.html").write_bytes(b"second")
    current.unlink()
    current.symlink_to(release)
    found = source.answer(f"{SITE}/")
    assert isinstance(found, Response) and found.content == b"second"


def test_a_root_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none cannot be served: No such file.*; bring it back") as refused:
        FileSource(tmp_path / "none", limit=1)
    assert "\n" not in str(refused.value)


def test_a_file_that_becomes_a_link_while_it_is_opened_leads_nowhere(root: Path) -> None:
    """Somebody who may write below the root swaps a file, and a directory, for links out of it, again and again."""
    secret, names = root.parent / "secret.txt", (root / "swapped.html", root / "swapping")
    (root / "plain").mkdir()
    (root / "plain" / "page.html").write_bytes(b"plain")
    stop, fresh = threading.Event(), root / "fresh"

    def swap() -> None:
        while not stop.is_set():
            fresh.symlink_to(secret)
            fresh.replace(names[0])
            fresh.write_bytes(b"plain")
            fresh.replace(names[0])
            (root / "plain").rename(names[1])
            names[1].rename(root / "plain")
            names[1].symlink_to(root.parent / "elsewhere")
            names[1].unlink()

    source = FileSource(root, limit=100)
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        found = []
        while len(found) < 2_000 or (len(found) < 50_000 and not _all_seen(found)):
            found += [source.answer(SITE + path) for path in ("/swapped.html", "/swapping/page.html")]
    finally:
        stop.set()
        swapper.join()
    assert _all_seen(found)
    assert SECRET not in {one.content for one in found if isinstance(one, Response)}


def _all_seen(found: list[Response | Withheld]) -> bool:
    """Whether both states of what is swapped were met."""
    kinds = {one.reason if isinstance(one, Withheld) else one.content for one in found}
    return {b"plain", "outside"} <= kinds
