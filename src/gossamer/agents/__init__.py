"""Several agents: one process for each, and a supervisor that starts and watches them (decision 44).

    supervisor   :mod:`crawl`       one crawl to people: made, run, summed up
                 :mod:`supervisor`  starts agents, starts them again, asks them in rounds, tells them to end
                 :mod:`restarts`, :mod:`shares`   its two rules, as plain code
    between      :mod:`orders`      what an agent is to run
                 :mod:`line`        questions to one agent, over its control socket
    agent        :mod:`process`     the program
                 :mod:`agent`       its run

The supervisor holds no URL and no page. How a URL travels from one agent to another: ARCHITECTURE.md.
"""
