"""`python -m gossamer` is the `gossamer` command."""

import sys

from gossamer.cli.main import main

sys.exit(main())
