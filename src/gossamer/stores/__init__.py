"""Where things rest: documents (WARC), rows of visits, seen sets. Parts behind `contracts.storing` and `contracts.seen`."""
