"""Ray: agents of a crawl on the nodes of a Ray cluster, and the documents of a crawl as a dataset that many machines read.

Place in the flow: `--cluster ray` has a :class:`~gossamer.ray.cluster.RayCluster` beside the supervisor. Ray places processes, each
of which joins the supervisor as a machine does (:mod:`gossamer.agents.joined`), and knows no more of the crawl. A program of the
user's own calls :func:`documents` (docs/ray.md). No other crawl imports this package. It is the only place that imports `ray` and
`pyarrow`, which the extra `ray` brings.

Promises: nothing lives only in Ray; no agent imports what lies in the folder of the program that started the crawl; a dataset has
the rows that every reader of the crawl gives, and computes nothing that no column asks for; between processes go bytes, Arrow
tables, and names of files and of functions of this package.

Open first: :mod:`cluster`, :mod:`dataset`.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from gossamer.ray.dataset import documents


def __getattr__(name: str) -> object:
    """`documents`, which a worker that is only to begin an agent does not load: with it come the libraries of the tables."""
    if name != "documents":
        raise AttributeError(f"module 'gossamer.ray' has no name {name!r}; it has documents")
    from gossamer.ray.dataset import documents

    return documents
