"""The first lines of a process that :mod:`gossamer.engine.processes` starts: `python -P launched.py MODULE [ARGUMENT...]`.

It stands on the standard library alone, since the import path that it sets is where everything else is found.
"""

import os
import runpy
import sys
from importlib.machinery import ModuleSpec, PathFinder


class StandardNames:
    """Finds modules of the standard library where they belong, and nowhere else.

    Some are not there on every system, as `nt` and `_winapi`, and Python's own modules try to import them. A file of that name in
    the person's folder, which may stand at the end of the path, must not become one of them.
    """

    def __init__(self, path: list[str]) -> None:
        self._path = path

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if path is not None or name not in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(name, self._path)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec


if __name__ == "__main__":
    sys.meta_path.insert(sys.meta_path.index(PathFinder), StandardNames(list(sys.path)))
    sys.path[:] = os.environ.pop("GOSSAMER_IMPORT_PATH").split(os.pathsep)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
