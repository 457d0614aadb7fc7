"""Control: how a person or a program steers a crawl that runs.

Place in the flow: :mod:`messages` says what can be asked, :mod:`server` takes it in the crawl's process, :mod:`steering`
does it, :mod:`client` asks from another process, and :mod:`wire` says where they meet. :mod:`standing` is the value that
`status` shows, :mod:`problems` finds in it what needs a person, and :mod:`resting` changes a crawl at rest.

Promises: a client holds up nothing; a request names no code, and an unknown one is refused.

Open first: :mod:`messages`, then :mod:`standing`.
"""
