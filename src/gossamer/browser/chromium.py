"""The browser of an agent: where it is found, how it is started, and how it ends.

Place in the flow: :class:`~gossamer.browser.tabs.Tabs` starts one when a page needs it; :mod:`gossamer.browser.guard` is the
program between, which puts up the walls. A `chromium-headless-shell` is preferred: it starts in a third of the time of a whole
`chromium` and takes half of its memory (docs/rendering.md).
"""

import asyncio
import contextlib
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path

import msgspec

from gossamer.browser.devtools import CommandFailed, DevTools
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Programs that are looked for on the path and where systems put them, the best first.
PROGRAMS = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)

#: The oldest version with `getHTML` and virtual time as they are used here.
OLDEST = 125

#: The program between.
GUARD = str(Path(__file__).with_name("guard.py"))

#: Seconds in which a browser has to answer its first command: 0.6 where nothing else runs.
START = 30.0

#: Bytes of memory that one page's process may take, and the browser with all of its pages.
PAGE_MEMORY, MEMORY = 512 << 20, 1_500 << 20

#: Features that speak to servers of the maker, or make pages begin before they are asked for.
_OFF = (
    *("Translate", "MediaRouter", "DialMediaRouteProvider", "OptimizationHints", "AutofillServerCommunication"),
    *("PaintHolding", "Prerender2", "SpareRendererForSitePerProcess"),
)

#: Nothing that a browser does by itself beside showing a page: no updates, no reports, no sound, no window of its own. Virtual time
#: needs every page to run as if it were in front.
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-prompt-on-repost",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--block-new-web-contents",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--force-color-profile=srgb",
    "--disable-features=" + ",".join(_OFF),
    "--window-size=1280,1024",
)

#: A browser that a person sees has its windows, its network and its speed. It outlives its last window, so that what it has stored
#: can be read then.
_SHOWN_FLAGS = (
    *("--remote-debugging-pipe", "--keep-alive-for-test", "--no-first-run", "--no-default-browser-check"),
    *("--disable-breakpad", "--disable-dev-shm-usage", "--disable-sync"),
    *("--password-store=basic", "--use-mock-keychain"),
)


def program(named: str = "", *, shown: bool = False) -> str:
    """The browser of this machine.

    Args:
        named: the program to take, by a person's choice.
        shown: it has to have windows.

    Raises:
        UsageError: there is none; says what to install.
    """
    for one in (named,) if named else (one for one in PROGRAMS if not (shown and one.endswith("-headless-shell"))):
        if found := shutil.which(one):
            # A browser looks for its files beside itself, and a link may lie elsewhere.
            return str(Path(found).resolve()) if Path(found).is_symlink() else found
    if named:
        raise UsageError(f"there is no browser at {named}; name the program of a Chromium")
    if shown:
        raise UsageError(
            "there is no Chromium with windows on this machine. Install one (Debian: apt install chromium; macOS: "
            "brew install --cask chromium), or name it with --browser PROGRAM"
        )
    raise UsageError(
        "pages cannot be rendered: there is no Chromium on this machine. Install one (Debian: apt install "
        "chromium-headless-shell; macOS: brew install --cask chromium), or name it with --browser PROGRAM"
    )


#: Where Debian's kernels say whether users may make namespaces, which the sandbox of a browser needs.
_MAY_MAKE_NAMESPACES = "/proc/sys/kernel/unprivileged_userns_clone"


class _Told(msgspec.Struct):
    """The line of the guard."""

    missing: str


class Chromium:
    """One browser with its walls."""

    def __init__(self, process: Process, devtools: DevTools, version: str, missing: str) -> None:
        assert process.stdout is not None
        self._process, self.output = process, process.stdout
        self.devtools = devtools
        self.version = version
        """As it tells it, as `HeadlessChrome/156.0.8078.108`."""
        self.missing = missing
        """Why it has no network of its own, and lives behind a dead proxy instead; empty where it has one."""

    @classmethod
    async def start(cls, path: str, guard: str = GUARD, *, shown: str = "") -> "Chromium":
        """Start a browser.

        Args:
            path: of its program.
            guard: of the program between.
            shown: a URL that a person is to see in it: no wall stands then, and no limit of memory.

        Raises:
            CommandFailed: it does not start, or is too old; says what is known of the reason.
        """
        devtools = DevTools()
        to_browser, our_write = os.pipe()
        our_read, from_browser = os.pipe()
        await devtools.connect(our_read, our_write)
        limits, flags = ("", (*_SHOWN_FLAGS, shown)) if shown else (f"{PAGE_MEMORY},{MEMORY}", _FLAGS)
        try:
            process = await processes.child(
                *(sys.executable, "-I", "-S", guard, str(to_browser), str(from_browser), limits, path, *flags),
                pass_fds=(to_browser, from_browser),
                stdin=DEVNULL,
                stderr=DEVNULL,
            )
        except OSError as error:
            devtools.close()
            raise CommandFailed(f"the browser cannot be started: {error}") from error
        except BaseException:
            devtools.close()  # a guard that was begun all the same ends with it
            raise
        finally:
            os.close(to_browser)
            os.close(from_browser)
        browser = cls(process, devtools, "", "")
        try:
            async with asyncio.timeout(START):
                browser.missing = msgspec.json.decode(await browser.output.readline(), type=_Told).missing
            version = await devtools.call("Browser.getVersion", patience=START)
        except (CommandFailed, TimeoutError, ValueError) as error:
            await browser.stop()
            hint, switch = (
                f"try `{path} --headless --dump-dom about:blank` as an ordinary user",
                Path(_MAY_MAKE_NAMESPACES),
            )
            if (
                sys.platform.startswith("linux")
                and switch.exists()
                and switch.read_text(encoding="ascii").strip() == "0"
            ):
                hint = f"its sandbox needs namespaces of users, which this system forbids (kernel.{switch.name})"
            raise CommandFailed(f"the browser {path} does not start; {hint}") from error
        except asyncio.CancelledError:
            browser.kill()
            raise
        browser.version = str(version.get("product", ""))
        number = browser.version.rpartition("/")[2].partition(".")[0]
        if not number.isdigit() or int(number) < OLDEST:
            await browser.stop()
            raise CommandFailed(
                f"the browser {path} is {browser.version or 'of no known version'}; {OLDEST} or newer is needed"
            )
        return browser

    @property
    def is_gone(self) -> bool:
        return self.devtools.gone.is_set()

    def kill(self) -> None:
        """Have its guard end it, and wait for nothing."""
        self.devtools.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()  # a page that spins would not let the browser end by itself

    async def stop(self) -> None:
        """End it, whatever its pages do; nothing of it is left."""
        self.kill()
        try:
            async with asyncio.timeout(START):
                await self._process.wait()
        except TimeoutError:
            processes.kill(self._process)
