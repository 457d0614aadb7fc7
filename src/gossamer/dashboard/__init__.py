"""The dashboard: crawls in the browser, as JSON, and for Prometheus. A process of its own, that a crawl does not
notice.

Place in the flow: `gossamer dashboard` and `gossamer crawl --dashboard` start it (:mod:`app`). It looks at crawls
as `gossamer status` does, over one connection each (:mod:`crawls`), reads their files, and answers about each of them
(:mod:`of_crawl`). Crawls that a click begins are processes of their own (:mod:`jobs`); so are questions
(:mod:`questions`) and exports (:mod:`exporting`). Decision 54 says why it is built so.

Promises: one place decides which request may do what, before anything else sees it (:mod:`guarding`); no click names
code or files of this machine; a page that a subject adds (:mod:`contract`) harms neither the dashboard nor a crawl.

Open first: :mod:`app`, then :mod:`of_crawl`.
"""
