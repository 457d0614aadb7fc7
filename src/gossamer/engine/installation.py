"""The command that installs an extra into this installation of Gossamer: a checkout, or what pip, pipx or uv made.

Place in the flow: a part whose library is missing asks here what its error tells the user to do.

Promises: the command names the packages that the extra consists of, never `gossamer[EXTRA]`: the index may know another
package by the name of Gossamer. It works in the environment that runs now, wherever that lies.
"""

import re
import shlex
import sys
from pathlib import Path

from gossamer.engine.errors import UnknownName

#: The checkout, where this file lies in one.
_ROOT = Path(__file__).resolve().parents[3]

#: A requirement of an extra in the metadata of what is installed, as `uvicorn>=0.38; extra == 'dashboard'`.
_OF_EXTRA = re.compile(r"""(?P<package>[^;]+);.*\bextra\s*==\s*["'](?P<extra>[^"']+)["']""")

#: Files that pipx and uv leave in the environments of single programs.
_OF_PIPX, _OF_UV = "pipx_metadata.json", "uv-receipt.toml"

#: Folders in uv's cache: `uvx` makes environments there for one run.
_FOR_ONE_RUN = ("archive-v0", "environments-v2")


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra here, as a user types it.

    Raises:
        UnknownName: Gossamer has no such extra.
    """
    return command_for(_packages(extra), Path(sys.prefix), sys.executable)


def command_for(packages: list[str], prefix: Path, python: str) -> str:
    """The command that installs packages into the environment at `prefix`, whose interpreter is `python`."""
    wanted = shlex.join(packages)
    if (prefix / _OF_PIPX).exists():
        return f"pipx inject {prefix.name} {wanted}"
    if any(name in prefix.parts for name in _FOR_ONE_RUN):
        return f"uvx {' '.join(f'--with {shlex.quote(package)}' for package in packages)} ..."
    if (prefix / _OF_UV).exists() or _is_of_uv(prefix):
        return f"uv pip install --python {shlex.quote(python)} {wanted}"
    return f"{shlex.quote(python)} -m pip install {wanted}"


def _is_of_uv(prefix: Path) -> bool:
    """Whether uv made this environment: it has no pip."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)


def _packages(extra: str) -> list[str]:
    found = _declared().get(extra)
    if not found:
        raise UnknownName(f"Gossamer has no extra {extra!r}")
    return found


def _declared() -> dict[str, list[str]]:
    """Extra -> its packages: from pyproject.toml in a checkout, else from the metadata of what is installed."""
    project = _ROOT / "pyproject.toml"
    if project.exists() and (_ROOT / "tools" / "bootstrap.py").exists():
        import tomllib

        declared: dict[str, list[str]] = tomllib.loads(project.read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        return declared
    from importlib.metadata import requires  # it takes 35 ms to load

    found: dict[str, list[str]] = {}
    for line in requires("gossamer") or ():
        if match := _OF_EXTRA.match(line):
            found.setdefault(match["extra"], []).append(match["package"].strip())
    return found
