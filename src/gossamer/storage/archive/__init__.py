"""gossamer.storage.archive."""
