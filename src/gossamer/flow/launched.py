"""The first lines of a process that :mod:`gossamer.flow.python` starts: `python -P launched.py MODULE [ARGUMENT...]`.

It stands on the standard library alone, since the import path that it sets is where everything else is found.
"""

import os
import runpy
import sys

if __name__ == "__main__":
    sys.path[:] = os.environ.pop("GOSSAMER_IMPORT_PATH").split(os.pathsep)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
