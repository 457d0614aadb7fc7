"""The browser is a guest: pages that attack it or what is around it reach nothing, and cost no other page anything."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from gossamer.browser import chromium
from gossamer.browser.chromium import PROGRAMS
from gossamer.browser.devtools import CommandFailed
from gossamer.browser.rendering import MOST_MARKUP, FetchedPage, RenderedPage, Want, WantedAnswer, WantRefused
from gossamer.browser.tabs import MOST_BEGUN, Tabs
from gossamer.values.body import RenderedHow

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, PROGRAMS)), reason="there is no Chromium on this machine"),
]

HTML = (("content-type", "text/html"),)


class Listeners:
    """A TCP and a UDP socket on loopback, which no page may reach."""

    def __init__(self) -> None:
        self.tcp, self.udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        for one in (self.tcp, self.udp):
            one.bind(("127.0.0.1", 0))
            one.setblocking(False)
        self.tcp.listen()
        self.ports = {"TCP": self.tcp.getsockname()[1], "UDP": self.udp.getsockname()[1]}

    def in_place(self, script: str) -> str:
        for name, port in self.ports.items():
            script = re.sub(rf"\b{name}\b", str(port), script)
        return script

    def contacts(self) -> list[str]:
        found = []
        for name, reach in (("tcp", self.tcp.accept), ("udp", lambda: self.udp.recvfrom(1))):
            try:
                reach()
                found.append(name)
            except BlockingIOError:
                pass
        return found

    def close(self) -> None:
        self.tcp.close()
        self.udp.close()


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    made = Listeners()
    yield made
    made.close()


#: Pages that reach for a network of their own, with the ports of the listeners in them.
REACHING = {
    "websocket": "new WebSocket('ws://127.0.0.1:TCP/'); new WebSocket('wss://localhost:TCP/')",
    "webrtc": "const p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}]}); p.createDataChannel('x');"
    "p.createOffer().then(o => p.setLocalDescription(o))",
    "webtransport": "new WebTransport('https://127.0.0.1:TCP/')",
    "popup": "for (let i = 0; i < 20; i++) open('http://127.0.0.1:TCP/' + i)",
    "link": "const a = document.createElement('a'); a.target = '_blank'; a.href = 'http://127.0.0.1:TCP/'; document.body.append(a);"
    "a.click()",
    "beacon": "navigator.sendBeacon('http://127.0.0.1:TCP/', 'x')",
    "hints": "document.head.innerHTML = '<link rel=preconnect href=http://127.0.0.1:TCP><link rel=prefetch "
    "href=http://127.0.0.1:TCP/p>"
    "<link rel=dns-prefetch href=//127.0.0.1:TCP><link rel=prerender href=http://127.0.0.1:TCP/q>'",
    "worker": "new Worker(URL.createObjectURL(new Blob([`new WebSocket('ws://127.0.0.1:TCP/'); fetch('http://127.0.0.1:TCP/');"
    "try { importScripts('http://127.0.0.1:TCP/x.js') } catch (e) {}`])))",
    "shared worker": "new SharedWorker(URL.createObjectURL(new Blob([`new WebSocket('ws://127.0.0.1:TCP/')`])))",
    "service worker": "navigator.serviceWorker.register('/worker.js')",
    "fetch": "fetch('http://127.0.0.1:TCP/'); new Image().src = 'http://[::1]:TCP/'; "
    "new Image().src = 'http://169.254.169.254/latest/'",
    "redirect": "fetch('/redirect')",
    "frame": "document.body.innerHTML = '<iframe src=http://127.0.0.1:TCP/></iframe><object data=http://127.0.0.1:TCP/></object>'",
    "files": "document.body.innerHTML += '<iframe src=file:///etc/passwd></iframe><img src=file:///etc/passwd>'; "
    "fetch('file:///etc/passwd')"
    ".then(r => r.text()).then(t => document.body.append(t))",
    "location": "location = 'file:///etc/passwd'",
    "chrome": "location = 'chrome://version'",
    "events": "new EventSource('http://127.0.0.1:TCP/')",
    "form": "const f = document.createElement('form'); f.method = 'post'; f.action = 'http://127.0.0.1:TCP/'; "
    "document.body.append(f); f.submit()",
    "refresh": "document.head.innerHTML = '<meta http-equiv=refresh content=\"0; url=http://127.0.0.1:TCP/\">'",
    "media": "new Audio('http://127.0.0.1:TCP/a.ogg').play().catch(() => 0)",
    "module": "import('http://127.0.0.1:TCP/m.js').catch(() => 0)",
    "css": "document.head.innerHTML = '<style>@import \"http://127.0.0.1:TCP/a.css\"; "
    "body { background: url(http://127.0.0.1:TCP/b) }</style>'",
    "names of loopback": "for (const one of ['localhost', '0.0.0.0', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'a.localhost'])"
    "{ new Image().src = `http://${one}:TCP/`; fetch(`http://${one}:TCP/`, {mode: 'no-cors'}).catch(() => 0) }",
    "synchronous request": "const x = new XMLHttpRequest(); x.open('GET', 'http://127.0.0.1:TCP/', false); "
    "try { x.send() } catch (e) {}",
    "worklets": "CSS.paintWorklet?.addModule('http://127.0.0.1:TCP/p.js').catch(() => 0); "
    "new OfflineAudioContext(1, 1, 8000).audioWorklet?.addModule('http://127.0.0.1:TCP/a.js').catch(() => 0)",
    "nested worker": "const inner = `new WebSocket('ws://127.0.0.1:TCP/'); new EventSource('http://127.0.0.1:TCP/')`;"
    "new Worker('data:text/javascript,' + encodeURIComponent(`new Worker('data:text/javascript,'"
    " + encodeURIComponent(${JSON.stringify(inner)}))`))",
    "module worker": "new Worker(URL.createObjectURL(new Blob([`import 'http://127.0.0.1:TCP/m.js'`], {type: 'text/javascript'})),"
    "{type: 'module'})",
    "drawing": "document.body.innerHTML += '<svg><image href=http://127.0.0.1:TCP/i /><use href=http://127.0.0.1:TCP/u#x />"
    "<filter id=f><feImage href=http://127.0.0.1:TCP/e /></filter></svg><video src=http://127.0.0.1:TCP/v autoplay>"
    "<track src=http://127.0.0.1:TCP/t default></video><embed src=http://127.0.0.1:TCP/o>'",
    "font": "new FontFace('x', 'url(http://127.0.0.1:TCP/f.woff2)').load().catch(() => 0)",
    "frame of a document": "document.body.innerHTML += `<iframe srcdoc=\"<script>new WebSocket('ws://127.0.0.1:TCP/');"
    "top.location = 'http://127.0.0.1:TCP/'</\" + \"script>\"></iframe>`; const f = document.createElement('iframe');"
    "f.src = URL.createObjectURL(new Blob(['<script>open(`http://127.0.0.1:TCP/`); fetch(`http://127.0.0.1:TCP/`)</' + 'script>'],"
    "{type: 'text/html'})); document.body.append(f)",
    "speculation": "const s = document.createElement('script'); s.type = 'speculationrules'; s.textContent = JSON.stringify({"
    "prerender: [{urls: ['http://127.0.0.1:TCP/', '/next'], eagerness: 'immediate'}],"
    "prefetch: [{urls: ['http://127.0.0.1:TCP/'], eagerness: 'immediate'}]}); document.head.append(s)",
    "links of the head": "document.head.innerHTML = '<link rel=manifest href=http://127.0.0.1:TCP/m><link rel=icon href="
    "http://127.0.0.1:TCP/i><link rel=modulepreload href=http://127.0.0.1:TCP/j><link rel=preload as=fetch "
    "href=http://127.0.0.1:TCP/k><link rel=stylesheet href=http://127.0.0.1:TCP/l>'",
    "ping": "const a = document.createElement('a'); a.ping = 'http://127.0.0.1:TCP/'; a.href = '#x'; "
    "document.body.append(a); a.click()",
    "leaving": "addEventListener('pagehide', () => { navigator.sendBeacon('http://127.0.0.1:TCP/', 'x');"
    "fetch('http://127.0.0.1:TCP/', {keepalive: true, method: 'POST', body: 'x'}).catch(() => 0) });"
    "try { fetchLater('http://127.0.0.1:TCP/') } catch (e) {} location = '/elsewhere'",
    "relays": "const p = new RTCPeerConnection({iceServers: [{urls: ['turn:127.0.0.1:TCP?transport=tcp', 'turn:127.0.0.1:UDP',"
    "'stun:localhost:UDP'], username: 'u', credential: 'c'}], iceCandidatePoolSize: 9}); p.createDataChannel('x');"
    "p.createOffer().then(o => p.setLocalDescription(o))",
    "identity": "navigator.credentials?.get({identity: {providers: [{configURL: 'https://127.0.0.1:TCP/c.json', clientId: 'x'}]}})"
    ".catch(() => 0); navigator.credentials?.get({publicKey: {challenge: new Uint8Array(9)}}).catch(() => 0)",
    "devices": "navigator.geolocation.getCurrentPosition(() => 0, () => 0); navigator.mediaDevices?.getUserMedia({audio: true})"
    ".catch(() => 0); navigator.requestMIDIAccess?.().catch(() => 0); window.Notification?.requestPermission();"
    "try { new webkitSpeechRecognition().start() } catch (e) {} navigator.bluetooth?.requestDevice().catch(() => 0)",
    "streams of sockets": "try { new WebSocketStream('ws://127.0.0.1:TCP/') } catch (e) {} "
    "try { new TCPSocket('127.0.0.1', TCP) } catch (e) {} try { new UDPSocket({remoteAddress: '127.0.0.1', remotePort: UDP}) }"
    "catch (e) {} try { new PresentationRequest('http://127.0.0.1:TCP/').start().catch(() => 0) } catch (e) {}",
    "other schemes": "for (const one of ['ftp', 'ws', 'view-source:http', 'blob:http', 'filesystem:http', 'intent'])"
    "{ fetch(`${one}://127.0.0.1:TCP/`).catch(() => 0); const f = document.createElement('iframe'); f.src = `${one}://127.0.0.1:TCP/`;"
    "document.body.append(f) }",
    "names": "for (let i = 0; i < 20; i++) { new Image().src = `http://told-${i}.example.test/`; const l ="
    "document.createElement('link'); l.rel = 'preconnect'; l.href = `https://asked-${i}.example.test`; document.head.append(l) }",
}  # fmt: skip

#: Fields of every such page, which have a browser reach out by itself.
REACHING_FIELDS = (
    *HTML,
    ("link", "<http://127.0.0.1:TCP/l>; rel=preload; as=script, <http://127.0.0.1:TCP>; rel=preconnect"),
    ("content-security-policy-report-only", "img-src 'none'; report-uri http://127.0.0.1:TCP/r"),
    ("reporting-endpoints", 'default="https://127.0.0.1:TCP/e"'),
    ("nel", '{"report_to": "default", "max_age": 9, "success_fraction": 1}'),
)

#: Pages that do not end, or take what they can get.
GREEDY = {
    "loop": "while (true);",
    "late loop": "setTimeout(() => { while (true); }, 50)",
    "regular expression": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "workers": "for (let i = 0; i < 200; i++) new Worker(URL.createObjectURL(new Blob(['while (true);'])))",
    "frames": "for (let i = 0; i < 300; i++) { const f = document.createElement('iframe'); "
    "f.src = 'http://f' + i + '.test/'; document.body.append(f) }",
    "requests": "for (let i = 0; i < 10000; i++) fetch('/r' + i).catch(() => 0)",
    "reload": "setTimeout(() => location.reload(), 0)",
    "navigation": "location = '/?' + Math.random()",
    "dialogs": "for (let i = 0; i < 100; i++) { alert(i); confirm(i); prompt(i) } document.title = 'through'",
    "buffers": "const a = []; (function grow() { const b = new Uint8Array(64 << 20); b.fill(1); a.push(b); "
    "setTimeout(grow, 0) })()",
    "elements": "for (let i = 0; i < 300000; i++) { const p = document.createElement('p'); "
    "p.textContent = 'x'.repeat(30) + i; document.body.append(p) }",
    "text": "document.body.append('x'.repeat(100 << 20))",
    "heap": "const a = []; (function grow() { a.push(new Array(1e6).fill(0).map(() => ({}))); setTimeout(grow, 0) })()",
    "storage": "const o = indexedDB.open('d'); o.onupgradeneeded = () => o.result.createObjectStore('s'); o.onsuccess = () => {"
    "let n = 0; (function grow() { const t = o.result.transaction('s', 'readwrite'); t.objectStore('s').put("
    "crypto.getRandomValues(new Uint32Array(16384)).toString().repeat(99), n++); t.oncomplete = grow })() }",
    "drawing": "const a = []; (function grow() { const c = document.createElement('canvas'); c.width = c.height = 8000;"
    "c.getContext('2d').fillRect(0, 0, 8000, 8000); a.push(c); setTimeout(grow, 0) })()",
    "machine code": "const b = Uint8Array.from("
    "[0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,7,5,1,1,102,0,0,10,9,1,7,0,3,64,12,0,11,11]);"
    "new WebAssembly.Instance(new WebAssembly.Module(b)).exports.f()",
    "routes": "for (let i = 0; ; i++) history.pushState({}, '', '/' + i)",
    "itself": "document.body.innerHTML = '<iframe src=/></iframe>'; for (let i = 0; i < 9; i++) "
    "{ const f = document.createElement('iframe'); f.src = location.href + '?' + i; document.body.append(f) }",
    "writing": "for (;;) document.write('<p>x')",
    "polling": "setInterval(() => fetch('/poll' + Math.random()).catch(() => 0), 10)",
    "download": "const a = document.createElement('a'); a.download = 'evil'; a.href = 'data:text/plain,x'; "
    "document.body.append(a); a.click()",
}  # fmt: skip


async def ask(want: Want) -> WantedAnswer:
    """The crawl's side: one host is there, and loopback is refused."""
    if not want.url.startswith("http://h.test/"):
        raise WantRefused("address_refused")
    if want.url.endswith("/redirect"):
        return WantedAnswer(302, (("location", "http://127.0.0.1:1/"),), b"")
    return WantedAnswer(200, (("content-type", "text/plain"),), b"x")


Fields = tuple[tuple[str, str], ...]


async def shown(tabs: Tabs, script: str, name: str = "h.test", fields: Fields = HTML) -> RenderedPage:
    body = f"<!DOCTYPE html><title>t</title><body>before<script>{script}</script><p>after".encode()
    return await tabs.render(name, FetchedPage("http://h.test/", WantedAnswer(200, fields, body), 1_700_000_000.0), ask)


def render_all(pages: Mapping[str, str], guard: str = chromium.GUARD, fields: Fields = HTML) -> dict[str, RenderedPage]:
    async def run() -> dict[str, RenderedPage]:
        tabs = Tabs(chromium.program(), 2, guard=guard)
        try:
            return {name: await shown(tabs, script, fields=fields) for name, script in pages.items()}
        finally:
            await tabs.close()

    return asyncio.run(run())


@pytest.mark.parametrize("wall", ["namespace", "dead ends"])
def test_no_page_reaches_the_network(wall: str, listeners: Listeners, tmp_path: Path) -> None:
    guard = Path(chromium.GUARD)
    if wall == "dead ends":
        text = guard.read_text(encoding="utf-8").replace("missing = _leave_network()", "missing = 'for this test'")
        guard = tmp_path / "guard.py"
        guard.write_text(text, encoding="utf-8")
    pages = {name: listeners.in_place(script) for name, script in REACHING.items()}
    assert len(pages) >= 40
    found = render_all(pages, str(guard), tuple((name, listeners.in_place(text)) for name, text in REACHING_FIELDS))
    assert not listeners.contacts()
    assert not [name for name, page in found.items() if "root:" in page.markup]
    assert {page.how for page in found.values()} <= {"done", "limited"}, {
        name: page.how for name, page in found.items()
    }


#: Of each kind of greed one: time, requests, pages without end, windows, files.
GREEDY_AT_EACH_CHANGE = ("loop", "requests", "reload", "dialogs", "storage")


@pytest.mark.parametrize(
    "names", [GREEDY_AT_EACH_CHANGE, pytest.param(tuple(GREEDY), marks=pytest.mark.long)], ids=["some", "all"]
)
def test_greedy_pages_end_and_each_next_page_is_whole(names: Sequence[str]) -> None:
    async def run() -> dict[str, tuple[RenderedPage, RenderedPage]]:
        tabs = Tabs(chromium.program(), 2, busy=3.0)
        found = {}
        try:
            for name in names:
                bad = await asyncio.wait_for(shown(tabs, GREEDY[name], "bad.test"), 90)
                found[name] = bad, await asyncio.wait_for(shown(tabs, "document.title = 'fine'", "good.test"), 60)
        finally:
            await tabs.close()
        return found

    for name, (bad, good) in asyncio.run(run()).items():
        assert (good.how, "fine" in good.markup) == ("done", True), name
        assert bad.how in ("done", "limited", "hung", "crashed"), name


def test_a_page_that_overrides_what_reads_it_changes_nothing() -> None:
    script = (
        "Element.prototype.getHTML = Document.prototype.createTreeWalker = () => 'owned'; JSON.stringify = () => 'owned';"
        "Object.defineProperty(Element.prototype, 'outerHTML', {get() { return 'owned' }}); document.body.append('whole')"
    )
    page = render_all({"page": script})["page"]
    assert page.markup.endswith("whole<p>after</p></body></html>")
    assert page.markup.startswith("<!DOCTYPE html><html>")


def test_half_a_character_of_a_script_costs_nothing_but_itself() -> None:
    scripts = {
        "text": "document.body.append('half \\ud800.')",
        "cut": f"document.body.hidden = true; document.body.append('\\u{{1F600}}'.repeat({MOST_MARKUP // 2}))",
        "odd cut": f"document.body.hidden = true; document.body.append('x' + '\\u{{1F600}}'.repeat({MOST_MARKUP // 2}))",
        "elsewhere": "name = document.title = '\\ud800'; alert('\\ud800'); const f = document.createElement('iframe');"
        "f.name = '\\ud800'; document.body.append(f); new Worker('data:text/javascript,1', {name: '\\ud800'})",
    }
    pages = render_all(scripts)
    assert {name: page.how for name, page in pages.items()} == {
        "text": "done", "cut": "limited", "odd cut": "limited", "elsewhere": "done",
    }  # fmt: skip
    assert "half \ufffd." in pages["text"].markup


@pytest.mark.parametrize("place", ["http://127.0.0.1:1/", "/redirect"])
def test_a_page_that_leads_to_what_it_may_not_have_stays_as_it_is(place: str) -> None:
    page = render_all({"page": f"location = '{place}'"})["page"]
    assert (page.how, page.counts["refused:address_refused"], page.url) == ("done", 1, "http://h.test/")
    assert "before" in page.markup


def test_a_guard_that_is_ended_while_it_starts_its_browser_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = Path(tempfile.mkdtemp())
    folders.chmod(0o777)  # the guard is another user
    monkeypatch.setenv("TMPDIR", str(folders))
    text = Path(chromium.GUARD).read_text(encoding="utf-8")
    for fault in ("os.kill(os.getpid(), signal.SIGTERM)", "os.dup2(os.open('/dev/null', os.O_RDONLY), 1)"):
        guard = tmp_path / "guard.py"
        faulty = text.replace("browser = os.fork()", f"{fault}; browser = os.fork()")
        late = faulty.replace("os.setsid()", "time.sleep(0.5); os.setsid()")  # it ends before the browser has a session
        guard.write_text(late, encoding="utf-8")
        with pytest.raises(CommandFailed):
            asyncio.run(chromium.Chromium.start(chromium.program(), str(guard)))
        assert list(folders.iterdir()) == []
    folders.rmdir()


def test_a_folder_of_a_browser_whose_guard_was_killed_goes_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = Path(tempfile.mkdtemp())
    folders.chmod(0o777)  # the guard is another user
    monkeypatch.setenv("TMPDIR", str(folders))

    async def run() -> tuple[set[Path], set[Path]]:
        program = chromium.program()
        lost, kept = await chromium.Chromium.start(program), await chromium.Chromium.start(program)
        both = set(folders.iterdir())
        lost._process.kill()
        await lost._process.wait()
        lost.devtools.close()
        third = await chromium.Chromium.start(program)
        found = set(folders.iterdir())
        for one in (kept, third):
            await one.stop()
        return both, found

    both, found = asyncio.run(run())
    assert (len(both), len(found), len(both & found)) == (2, 2, 1)
    assert list(folders.iterdir()) == []
    folders.rmdir()


#: A guard with a browser that does nothing, in its first two lives.
IDLE_TWICE = """
import json, os, sys
with open(COUNTED, "a") as counted:
    counted.write("x")
    lives = counted.tell()
if lives > 2:
    os.execv(sys.executable, [sys.executable, "-I", "-S", GUARD, *sys.argv[1:]])
print('{"missing": ""}', flush=True)
told = b""
while chunk := os.read(int(sys.argv[1]), 65536):
    *commands, told = (told + chunk).split(b"\\0")
    for command in map(json.loads, commands):
        is_version = command["method"] == "Browser.getVersion"
        said = {"result": {"product": "Idle/999.0"}} if is_version else {"error": {"message": "no answer"}}
        os.write(int(sys.argv[2]), json.dumps({"id": command["id"], **said}).encode() + b"\\0")
"""


def test_a_browser_that_opens_no_tab_is_not_taken_for_none(tmp_path: Path) -> None:
    guard, counted = tmp_path / "guard.py", tmp_path / "lives"
    guard.write_text(IDLE_TWICE.replace("COUNTED", repr(str(counted))).replace("GUARD", repr(chromium.GUARD)))
    page = render_all({"page": "document.title = 'fine'"}, str(guard))["page"]
    assert (page.how, counted.read_text()) == ("done", "xxx")


def test_a_browser_for_which_the_system_has_no_process_costs_no_more_than_one_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def child(*words: str, **streams: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", child)
    assert render_all({"page": ""})["page"].how == "no_browser"


def test_pages_beside_one_that_takes_the_browser_down_are_rendered_again() -> None:
    async def run() -> tuple[RenderedPage, RenderedPage]:
        tabs, asked, killed = Tabs(chromium.program(), 2), asyncio.Event(), asyncio.Event()

        async def slowly(want: Want) -> WantedAnswer:
            asked.set()
            await killed.wait()
            return await ask(want)

        body = b"<title>t</title><script>fetch('/slow').then(r => r.text()).then(t => document.body.append(t))</script>"
        page = FetchedPage("http://h.test/", WantedAnswer(200, HTML, body), 1_700_000_000.0)
        try:
            slow = asyncio.create_task(tabs.render("good.test", page, slowly))
            await asked.wait()
            assert tabs._browser is not None
            tabs._browser.kill()  # as its guard does where memory runs out
            killed.set()
            return await asyncio.wait_for(slow, 60), await shown(tabs, "", "other.test")
        finally:
            await tabs.close()

    first, second = asyncio.run(run())
    assert (first.how, second.how) == ("done", "done")


def test_a_page_whose_process_ends_just_before_its_browser_is_rendered_again() -> None:
    """As all processes of a browser are ended at once, in whatever order."""

    async def run() -> RenderedPage:
        tabs = Tabs(chromium.program(), 2)

        async def killing(want: Want) -> WantedAnswer:
            if tabs.started == 1:
                assert tabs._browser is not None
                end_pages_first(tabs._browser._process.pid)
            return await ask(want)

        body = b"<title>t</title><script>fetch('/slow').then(r => r.text()).then(t => document.body.append(t))</script>"
        page = FetchedPage("http://h.test/", WantedAnswer(200, HTML, body), 1_700_000_000.0)
        try:
            found = await asyncio.wait_for(tabs.render("good.test", page, killing), 60)
            assert tabs.started == 2
            return found
        finally:
            await tabs.close()

    assert asyncio.run(run()).how == "done"


def end_pages_first(guard: int) -> None:
    """Kill what a guard has begun: processes of pages, and then the others, while the loop of this thread sees neither."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found, around = dict[str, str](), {str(guard)}
    while around:
        below = {pid: words for pid, parent, words in rows if parent in around}
        found, around = found | below, {*below}
    pages = {pid for pid, words in found.items() if "--type=renderer" in words}
    assert pages
    for some in (pages, found.keys() - pages):
        for pid in some:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.5)  # the browser sees the first ones


def test_a_page_whose_browsers_are_lost_to_others_is_rendered_by_itself_in_the_end() -> None:
    async def run() -> tuple[RenderedPage, int]:
        tabs, asked = Tabs(chromium.program(), 2), 0

        async def losing(want: Want) -> WantedAnswer:
            nonlocal asked
            asked += 1
            if asked <= MOST_BEGUN:
                assert tabs._browser is not None
                tabs._browser.kill()  # as its guard does where memory runs out
            return await ask(want)

        body = b"<title>t</title><script>fetch('/slow').then(() => document.title = 'fine')</script>"
        page = FetchedPage("http://h.test/", WantedAnswer(200, HTML, body), 1_700_000_000.0)
        try:
            return await asyncio.wait_for(tabs.render("h.test", page, losing), 120), asked
        finally:
            await tabs.close()

    page, asked = asyncio.run(run())
    assert (page.how, "fine" in page.markup, asked) == ("done", True, MOST_BEGUN + 1)


def test_a_browser_ends_after_many_pages_though_its_places_are_always_taken() -> None:
    async def run() -> tuple[set[RenderedHow], int, int]:
        tabs, asked, ends = Tabs(chromium.program(), 2, lifetime=4), asyncio.Event(), asyncio.Event()

        async def slowly(want: Want) -> WantedAnswer:
            asked.set()
            await ends.wait()
            return await ask(want)

        body = b"<title>t</title><script>fetch('/slow').then(r => r.text()).then(t => document.body.append(t))</script>"
        page = FetchedPage("http://h.test/", WantedAnswer(200, HTML, body), 1_700_000_000.0)
        slow = asyncio.create_task(tabs.render("slow.test", page, slowly))
        await asked.wait()
        try:
            found = {(await shown(tabs, "document.title = 'fine'", f"h{number}.test")).how for number in range(12)}
            before = len(tabs._showing)
            ends.set()
            found.add((await asyncio.wait_for(slow, 60)).how)
            return found, before, len(tabs._showing)
        finally:
            await tabs.close()

    assert asyncio.run(run()) == ({"done"}, 1, 0)
