"""A crawl as a folder that opens in a browser without a server, as `wget -mk` leaves one.

:mod:`names` says which document becomes which file, :mod:`rewriting` makes links between files of links between URLs, and
:mod:`writing` reads the archive and writes the folder, whole, beside the one that it replaces.
"""
