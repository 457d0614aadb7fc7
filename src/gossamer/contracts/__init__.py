"""The seams: small protocols that stages speak to and parts stand behind. Each names its promises and its suite."""
