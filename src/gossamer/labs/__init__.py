"""gossamer.labs."""
