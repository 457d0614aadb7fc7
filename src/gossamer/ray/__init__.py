"""Ray: the documents of a crawl as a dataset that many machines read at once.

Place in the flow: a program of the user's own calls :func:`documents` (docs/ray.md); no crawl imports this package. It is the
only place that imports `ray` and `pyarrow`, which the extra `ray` brings.

Promises: a dataset has the rows that the tables of the crawl tell, and bodies and texts as the Python interface gives them; nothing
is computed that no column asks for; between processes go Arrow tables, names of files and of functions of this package.

Open first: :mod:`dataset`.
"""

from gossamer.ray.dataset import documents
