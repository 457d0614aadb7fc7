"""A further process that serves a simulated web, as :mod:`gossamer.simweb.beside` starts it."""

from gossamer.simweb.beside import main

main()
