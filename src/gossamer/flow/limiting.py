"""What a process of ours may take that works on questions or documents of strangers: the system sees to it."""

import resource


def limit(memory: int, seconds: int) -> None:
    """Take no more memory (bytes) and CPU time than this, where the system can see to it."""
    for what, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
