"""Control: how a person or a program steers a crawl that runs. :mod:`messages` says what can be asked, :mod:`mcp_server`
takes it in the crawl's process, :mod:`steering` does it, :mod:`client` asks from another process, :mod:`places` says
where they meet.
"""
