"""Full text of a crawl: an index of its documents by tantivy, made from a feed of committed visits, and questions to it."""
