"""Words for people and models: pages as Markdown, chunks for retrieval, text of PDF, and a server that models ask.

Place in the flow: :mod:`gossamer.documents.main_part` and :mod:`gossamer.documents.markdown` make words of one page;
:mod:`reading` reads those of one document, :mod:`exporting` writes those of a crawl as files, :mod:`chunks` cuts them for an
index of vectors. A crawl keeps the words of its pages as items with `--keep-words`, and follows links of PDF with `--follow-pdf`
and those of `llms.txt` with `--llms-txt` (:mod:`reading`). `gossamer mcp` serves all of it to models (:mod:`commands`).

Promises: a page's words are a function of the page; content of pages is data, and nothing that a page says changes what a
command or the server does; every limit is told.

Open first: :mod:`reading`.
"""

from gossamer.engine.subjects import Command, Subject

SUBJECT = Subject(
    name="words",
    title="Words",
    example="gossamer crawl https://example.org/ --llms-txt",
    options="gossamer.words.options:WordsOptions",
    wire="gossamer.words.options:wire",
    commands={
        "mcp": Command(
            "gossamer.words.commands:mcp", "Serve crawls to models, by the Model Context Protocol.", "Take out"
        ),
    },
    providers={
        "llms-links": "gossamer.words.reading:LlmsLinks",
        "pdf-links": "gossamer.words.reading:PdfLinks",
        "words": "gossamer.words.reading:WordColumns",
    },
)
