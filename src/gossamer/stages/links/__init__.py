"""Links: what the processors found becomes canonical URLs, each once, in document order."""
