"""Backup: a copy of a crawl that outlives its machine, in S3, GCS or Azure, or in a folder on another disk (`--store`).

Place in the flow: :mod:`publisher` is a provider beside the commit. Every few minutes it ships what is new and publishes a
*checkpoint* of the whole crawl directory. :mod:`head` says what lies in a store and who may write there. :mod:`elsewhere` brings a
crawl back: into an empty folder to go on with it, or into a cache to read it. A :class:`~contract.Store` is a folder
or several of them (:mod:`opening`), or :mod:`cloud`, which needs the package `obstore` (`gossamer[store]`).

Promises: a checkpoint names only what is in the store; one process owns a crawl, and another one that thinks it does can
publish nothing; what is read back has the bytes that were shipped. A crawl without `--store` loads none of this.

Open first: :mod:`contract`, then :mod:`head`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="backup",
    title="Storage elsewhere",
    example="gossamer crawl https://example.org/ --store s3://bucket/example -o mine",
    options="gossamer.backup.options:StoreOptions",
    wire="gossamer.backup.options:wire",
    wire_where=(),
    commands={
        "store": Command(
            "gossamer.backup.commands:store", "List objects that a store has and no checkpoint needs.", "Mend"
        )
    },
    far_archive="gossamer.backup.far_archive:opened",
    providers={"store-publisher": "gossamer.backup.publisher:Publisher"},
)
