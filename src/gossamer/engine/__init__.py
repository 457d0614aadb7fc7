"""The engine: components, connectors, providers, wiring, and the processes that they run in. It knows nothing of the
web.

Place in the flow: it is the component architecture of a 2007 thesis (Hunyadi 2007, chapter 4). A *component* declares
typed ports, providers and settings on its class (:mod:`component`, :mod:`ends`, :mod:`sheet`); a *runner* receives,
pools, suspends and counts for it (:mod:`runner`). A *connector* is typed, bounded and closable, within the process
(:mod:`local`) or between processes (:mod:`remote`). A *provider* is a shared service behind an interface. A *wiring* is
TOML (:mod:`wiring`); :mod:`planning` checks it whole and makes a graph, :mod:`running` runs it, and :mod:`changing`
turns a running graph into another one.

Promises: units cannot tell which connector or provider stands behind a name; a graph is refused as a whole before
anything starts; what an item causes is acknowledged only when it is safe (:mod:`gate`). Subjects join through one door,
:mod:`subjects`.

Open first: :mod:`component`, then :mod:`planning`.
"""
