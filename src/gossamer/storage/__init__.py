"""Where things rest: documents (WARC), rows of visits, seen sets. Behind `contracts.storing` and `contracts.seen`."""
