"""The dashboard: crawls in the browser, as JSON, and for Prometheus. A process of its own, that a crawl does not
notice.

Place in the flow: `gossamer dashboard` and `gossamer crawl --dashboard` start it (:mod:`app`). It looks at crawls
as `gossamer status` does, over one connection each (:mod:`crawls`), and reads their files. Who may ask for what is
decided in one place, before anything else sees a request (:mod:`guarding`). Decision 54 says why it is built so.
"""
