"""Pages that are rendered for a person who has logged in: a profile reaches its own hosts, and no record holds its secrets."""

import gzip
import json
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import gave

from gossamer.browser import profiles
from gossamer.browser.chromium import PROGRAMS
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

FULL = shutil.which("chromium")
SECRETS = (b"s3cret-of-a", b"s3cret-of-b", b"t0ken-of-a", b"t0ken-of-b", b"renewed-by-a")

SHOWN = """<!doctype html><title>Account</title><p></p><script>
const token = localStorage.getItem('token');
const told = text => { document.querySelector('p').append(text + '. '); };
document.cookie = 'view=list';
told('in storage: ' + Object.keys(localStorage) + '; of scripts: ' + document.cookie.replace(/=[^;]*/g, ''));
Promise.all([fetch('/api', {headers: {authorization: 'Bearer ' + token}}),
  fetch('http://b.test/api', {credentials: 'include'})]).then(answers => answers.map(one => one.text().then(told)));
</script>"""


def cookie(name: str, value: str, domain: str, **more: object) -> dict[str, object]:
    return {"name": name, "value": value, "domain": domain, "path": "/", "expires": -1, **more}


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    storage = [
        {"origin": f"http://{one}.test", "localStorage": [{"name": "token", "value": f"t0ken-of-{one}"}]}
        for one in "ab"
    ]
    cookies = [cookie("sid", "s3cret-of-a", "a.test", httpOnly=True), cookie("sid", "s3cret-of-b", ".b.test")]
    cookies.append(
        cookie("theme", "dark", "a.test", sameSite="None")
    )  # no browser takes such a one: it has to be secure
    path.write_text(json.dumps({"cookies": cookies, "origins": storage}))
    path.chmod(0o600)
    return path


@pytest.mark.skipif(not any(map(shutil.which, PROGRAMS)), reason="there is no Chromium on this machine")
def test_pages_are_rendered_for_the_person_of_a_profile_and_each_host_gets_its_own_alone(
    tmp_path: Path, profile: Path
) -> None:
    def account(request: FakeRequest) -> FakePage:
        return FakePage(SHOWN, headers=(("Set-Cookie", "sid=renewed-by-a; HttpOnly"),))

    def api(request: FakeRequest) -> FakePage:
        fields = (("Access-Control-Allow-Origin", "http://a.test"), ("Access-Control-Allow-Credentials", "true"))
        return FakePage(f"{request.host} knows you", type="text/plain", headers=fields)

    directory = tmp_path / "c"
    pages = {"http://a.test/": account, "http://a.test/api": api, "http://b.test/api": api}
    with FakeWeb(pages) as web:
        given = {"output": str(directory), "render": "always", "profile": str(profile), "resolve": (web.resolve,)}
        settings = {"dns": {"allow_networks": ["127.0.0.0/8"], "allow_ports": [web.port]}}
        run(Crawl(["http://a.test/"], build(all_options(), {"delay": 0, **given}), settings=settings))
        sent = {f"{one.host}{one.target}": (one.header("cookie"), one.header("authorization")) for one in web.requests}
    assert sent["a.test/"] == ("sid=s3cret-of-a; theme=dark", "")
    assert sorted(sent["a.test/api"][0].split("; ")) == ["sid=renewed-by-a", "theme=dark", "view=list"]
    assert sent["a.test/api"][1] == "Bearer t0ken-of-a"
    assert sent["b.test/api"] == ("sid=s3cret-of-b", "")
    status, shown, _ = gave("cat", str(directory), "http://a.test/", "--rendered")
    assert status == 0
    assert "in storage: token; of scripts: view. " in shown
    assert "a.test knows you" in shown and "b.test knows you" in shown
    for path in (path for path in directory.rglob("*") if path.is_file()):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        assert not [secret for secret in SECRETS if secret in data], path
    status, said, _ = gave("reprocess", str(directory), "--render")
    assert status == 0 and "1 of them as the archive has them" in said
    profile.unlink()
    assert gave("reprocess", str(directory), "--render")[0] == 0


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        ("{}", 0o644, "can be read by others"),
        ("a\tb", 0o600, "is no profile; `"),
        ('{"cookies": [{"name": "a", "value": "b", "domain": "no host", "path": "/"}]}', 0o600, "cookie 1 is not a"),
        (None, 0o600, "cannot be read: No such file"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_before_anything_is_fetched(
    content: str | None, mode: int, told: str, profile: Path, tmp_path: Path
) -> None:
    profile.unlink()
    if content is not None:
        profile.write_text(content)
        profile.chmod(mode)
    with FakeWeb({"/": "x"}) as web:
        directory = str(tmp_path / "c")
        status, _, said = gave("crawl", web.url("/"), "-o", directory, "--render", "auto", "--profile", str(profile))
        assert (status, web.requests) == (2, [])
    assert told in said and said.count("\n") == 1


def test_a_profile_needs_pages_that_are_rendered_and_is_no_second_file_of_cookies(profile: Path) -> None:
    seed = "http://localhost:9/"
    status, _, said = gave("crawl", seed, "--profile", str(profile))
    assert status == 2 and "need --render" in said
    status, _, said = gave("crawl", seed, "--render", "auto", "--profile", str(profile), "--cookie-file", str(profile))
    assert status == 2 and "leave --cookie-file out" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("http://a.test/", "p.json", "--browser", "/nowhere/chromium"), "no browser at /nowhere/chromium"),
        (("http://a.test/", "p.json", "--browser", "true"), "there is no screen here"),
        (("file:///etc/passwd", "p.json"), "an http or https URL"),
        (("http://a.test/", "no-folder/p.json"), "name a file in a folder that is there"),
    ],
)
def test_a_log_in_that_cannot_begin_is_refused_in_one_line(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    status, _, said = gave("profile", *words, cwd=tmp_path, environment={"DISPLAY": "", "WAYLAND_DISPLAY": ""})
    assert status == 2 and told in said and said.count("\n") == 1


@pytest.fixture(params=["a window", "no window"])
def browser(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A screen and a program: a whole Chromium and a screen that is there for this test alone, or a Chromium that needs none."""
    if request.param == "no window":
        program = next(filter(None, map(shutil.which, PROGRAMS)), "")
        if not program:
            pytest.skip("there is no Chromium on this machine")
        with tempfile.TemporaryDirectory(
            prefix="gossamer-"
        ) as folder:  # root's browser runs as another user, who may go there
            hidden = Path(folder, "chromium")
            hidden.write_text(f'#!/bin/sh\nexec {shlex.quote(str(Path(program).resolve()))} --headless "$@"\n')
            for path in (hidden, hidden.parent):
                path.chmod(0o755)
            yield ":0", str(hidden)
        return
    if not (FULL and shutil.which("Xvfb")):
        pytest.skip("there is no whole Chromium with Xvfb on this machine")
    told, tells = os.pipe()
    words = ["Xvfb", "-displayfd", str(tells), "-ac", "-nolisten", "tcp", "-screen", "0", "1024x768x24"]
    server = subprocess.Popen(words, pass_fds=(tells,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(tells)
    with os.fdopen(told) as line:
        yield f":{line.readline().strip()}", FULL
    server.terminate()
    server.wait()


#: A person of script: logs in, and closes the window once the server knows.
PERSON = """<!doctype html><title>Log in</title><script>
fetch('/enter', {method: 'POST'}).then(() => {
  localStorage.setItem('token', 't0ken');
  document.cookie = 'view=list; max-age=900';
  const leave = () => fetch('/may-leave').then(answer => { if (answer.ok) { window.close(); } else { setTimeout(leave, 100); } });
  leave();
});
</script>"""


@pytest.mark.slow
def test_what_a_person_has_stored_in_a_visible_browser_is_kept_for_them_alone(
    tmp_path: Path, browser: tuple[str, str]
) -> None:
    screen, program = browser
    file, entered = tmp_path / "profile.json", []

    def enter(request: FakeRequest) -> FakePage:
        entered.append(time.monotonic())
        return FakePage("", headers=(("Set-Cookie", "sid=s3cret; HttpOnly; Max-Age=900"),))

    def may_leave(request: FakeRequest) -> FakePage:
        return FakePage("", status=200 if time.monotonic() > entered[0] + 10 * profiles.LOOK else 404)

    with FakeWeb({"/": PERSON, "/enter": enter, "/may-leave": may_leave}) as web:
        status, _, said = gave(
            "profile", web.url("/"), str(file), "--browser", program, environment={"DISPLAY": screen}
        )
        origin = web.url("/").removesuffix("/")
    assert (status, "2 cookies" in said) == (0, True), said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = json.loads(file.read_text())
    kept = {one["name"]: (one["value"], one["httpOnly"], one["expires"] > time.time()) for one in found["cookies"]}
    assert kept == {"sid": ("s3cret", True, True), "view": ("list", False, True)}
    assert found["origins"] == [{"origin": origin, "localStorage": [{"name": "token", "value": "t0ken"}]}]
