"""The frontier: knows what is still to be fetched, and which host may be asked now."""
