"""The seams: small protocols between stages and parts. Each lists its promises and its conformance suite."""
