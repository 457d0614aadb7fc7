"""A further process that serves a simulated web, as :mod:`gossamer.simweb.server` starts it."""

from gossamer.simweb.server import main

main()
