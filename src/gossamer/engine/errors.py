"""The error tree of the engine, on one page.

`FlowError` is the root. Each class is a situation that a caller treats differently; the message says what happened,
to what, and what to do.

Where a part's library is missing, its error tells the user what to do by :func:`install_command`: the command that installs an
extra into this installation of Gossamer, be it a checkout, or what pip, pipx or uv made. It names the packages that the extra
consists of, never `gossamer[EXTRA]`: the index may know another package by the name of Gossamer. It works in the environment that
runs now, wherever that lies.
"""

import contextlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path


class FlowError(Exception):
    """Root of the engine's errors. `exit_code` is what a command ends with when a person caused it."""

    exit_code: int = 1


class WiringError(FlowError):
    """The wiring cannot be run as written. Names the file and the key, and says how to mend it."""

    exit_code = 2


class BrokenWiring(WiringError):
    """The file of a wiring is missing, cut, or no TOML."""


class SettingError(FlowError):
    """A setting of a unit cannot take this value, or cannot change while the unit runs."""

    exit_code = 2


class UnknownName(WiringError):
    """Nothing is registered under this name. Lists the known names."""


class ConnectorError(FlowError):
    """Root of the errors at a connector's ends."""


class WrongItem(ConnectorError):
    """An item of the wrong type was offered. The sender's fault; the connector is unharmed."""


class Closed(ConnectorError):
    """This process closed this end of a connector, so nothing can be sent or received through it."""


class EndOfItems(ConnectorError):
    """Every producer has closed and every item has been received: the normal end of a stream."""


class RemoteRefused(ConnectorError):
    """The other side of a remote connector refused us: wrong secret, wrong item type, unknown connector."""


class BrokenFrame(ConnectorError):
    """Bytes that came over a remote link are no frame of this protocol. The connection is dropped before memory is
    allocated."""


class ComponentFailed(FlowError):
    """A component raised an error and its policy is to stop, or it raised too often. Names the component and its items.

    The crawl ends incomplete (4), and keeps everything that it had kept before.
    """

    exit_code = 4


# -- the command that installs an extra


@contextlib.contextmanager
def refusing(kind: type[Exception], told: str, advice: str = "") -> Iterator[None]:
    """Tell an error of the operating system in one line: `kind` says what cannot be done (`told`), why, and the `advice`."""
    try:
        yield
    except OSError as error:
        raise kind(f"{told}: {error.strerror or error}{advice}") from None


#: The checkout, where this file lies in one.
_ROOT = Path(__file__).resolve().parents[3]

#: A requirement of an extra in the metadata of what is installed, as `uvicorn>=0.38; extra == 'dashboard'`.
_OF_EXTRA = re.compile(r"""(?P<package>[^;]+);.*\bextra\s*==\s*["'](?P<extra>[^"']+)["']""")

#: Files that pipx and uv leave in the environments of single programs.
_OF_PIPX, _OF_UV = "pipx_metadata.json", "uv-receipt.toml"

#: Folders in uv's cache: `uvx` makes environments there for one run.
_FOR_ONE_RUN = ("archive-v0", "environments-v2")


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra here, as a user types it. Raises UnknownName: Gossamer has no such
    extra."""
    project = _ROOT / "pyproject.toml"
    if project.exists() and (_ROOT / "tools" / "bootstrap.py").exists():
        import tomllib

        known = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        packages: list[str] = known.get(extra, [])
    else:
        from importlib.metadata import requires  # it takes 35 ms to load

        found = [match for line in requires("gossamer") or () if (match := _OF_EXTRA.match(line))]
        packages = [match["package"].strip() for match in found if match["extra"] == extra]
    if not packages:
        raise UnknownName(f"Gossamer has no extra {extra!r}")
    return command_for(packages, Path(sys.prefix), sys.executable)


def command_for(packages: list[str], prefix: Path, python: str) -> str:
    """The command that installs packages into the environment at `prefix`, whose interpreter is `python`."""
    wanted = shlex.join(packages)
    if (prefix / _OF_PIPX).exists():
        return f"pipx inject {prefix.name} {wanted}"
    if any(name in prefix.parts for name in _FOR_ONE_RUN):
        return f"uvx {' '.join(f'--with {shlex.quote(package)}' for package in packages)} ..."
    try:
        settings = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        settings = []
    # An environment that uv made has no pip.
    if (prefix / _OF_UV).exists() or any(line.partition("=")[0].strip() == "uv" for line in settings):
        return f"uv pip install --python {shlex.quote(python)} {wanted}"
    return f"{shlex.quote(python)} -m pip install {wanted}"
