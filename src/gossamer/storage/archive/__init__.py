"""The archive: every answer as it came, in WARC/1.1 files that grow by whole groups of visits.

Place in the flow: the commit appends records (:mod:`warc`, :mod:`records`); commands read them back by where they lie,
or all in order (:mod:`reading`); :mod:`cdxj` is the index that replay tools use. :mod:`others` reads archives that
other programs wrote.

Open first: :mod:`contract`, then :mod:`warc`.
"""
