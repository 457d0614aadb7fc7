"""Agents: one crawl by many processes, each with a graph, a ledger and files of its own.

Place in the flow: a *supervisor* (:mod:`several`, :mod:`supervisor`, :mod:`roster`) lets a *cluster* (:mod:`cluster`) place
agents, asks them in rounds and holds no URL. :mod:`wiring` makes an agent's wiring of the crawl's. The :mod:`ring`, or masters
(:mod:`masters`, :mod:`marshaler`, :mod:`designations`), say which agent has a host. URLs of others wait in the mailbox
(:mod:`gossamer.storage.mailbox`), travel by :mod:`url_exchange`, and are forgotten when the other agent has committed
them. What agents have together is :mod:`lending`; agents join and leave by :mod:`membership`; agents without a network exchange
files (:mod:`merging`). On machines of their own they join (:mod:`joined`).

Promises: any agent or master may die for good; no URL is lost, no host is asked too early or by two agents; a change
that a kill interrupts is finished or undone.

Open first: :mod:`wiring`, then :mod:`supervisor`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="agents",
    title="Many processes",
    wire="gossamer.agents.wiring:exchange_by_files",
    wire_where=("exchange", "agent", "exchange_key"),
    beside={"file-outbox": "gossamer.agents.merging:FileExchange"},
    forget="gossamer.agents.membership:forget_shared",
    clusters={
        "local": "gossamer.agents.cluster:local_cluster",
        "joined": "gossamer.agents.joined.welcoming:JoinedCluster",
        "ray": "gossamer.ray.cluster:RayCluster",
    },
    far_commands={"ray": "gossamer.ray.connecting:run"},
    far_tasks={"ray": "gossamer.ray.connecting:mapped"},
    commands={
        "agent": Command(
            "gossamer.agents.commands:agent", "Join a crawl that another machine supervises.", "Many machines"
        ),
        "exchange": Command(
            "gossamer.agents.commands:exchange",
            "Write the URLs that a crawl owes other agents into files.",
            "Many machines",
        ),
        "merge": Command(
            "gossamer.agents.commands:merge", "Merge exchange files of other agents into a crawl.", "Many machines"
        ),
        "designations": Command(
            "gossamer.agents.commands:designations",
            "Show which agent has which domain, or give a domain to another one.",
            "Many machines",
        ),
    },
    components={
        "send-urls": "gossamer.agents.url_exchange:SendUrls",
        "send-mail": "gossamer.agents.url_exchange:SendMail",
        "receive-urls": "gossamer.agents.url_exchange:ReceiveUrls",
        "receive-mail": "gossamer.agents.url_exchange:ReceiveMail",
        "marshal": "gossamer.agents.marshaler:Marshal",
        "mass-communicator": "gossamer.agents.mail:MassCommunicator",
        "other-agent": "gossamer.agents.url_exchange:OtherAgent",
    },
    providers={
        "agent-digests": "gossamer.agents.digests:AgentDigests",
        "ring": "gossamer.agents.ring:RingDesignation",
        "designations": "gossamer.agents.designations:KeptDesignations",
        "shared-designations": "gossamer.agents.designations:SharedDesignations",
        "shared-state": "gossamer.storage.mailbox.shared_state:CrawlSharedState",
        "mass-mail": "gossamer.agents.mail:MassMail",
        "held-domains": "gossamer.agents.ring:HeldDomains",
        "least-loaded": "gossamer.agents.designations:LeastLoaded",
        "by-domain": "gossamer.agents.designations:ByDomain",
        "by-place": "gossamer.agents.designations:ByPlace",
        "random-agent": "gossamer.agents.designations:RandomAgent",
        "host-names": "gossamer.agents.marshaler:GivenHostNames",
        "recent-urls": "gossamer.agents.marshaler:RecentUrlTable",
    },
)
