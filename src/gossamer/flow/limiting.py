"""What a process of ours may take that works on questions or documents of strangers: the system sees to it."""

import resource


def limit(memory: int, seconds: int) -> None:
    """Take no more memory (bytes) and CPU time than this, where the system can see to it."""
    for what, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


#: Bytes of address space below which the libraries that store and ask cannot start a thread, and end their process without a word:
#: a crawl with its tables ran with 0.9 GB and died with 0.7 (x86-64, 2 cores).
LEAST_SPACE = 1_000_000_000


def too_little_memory() -> str:
    """Why this process cannot open a store: the system gives it too little memory; empty where it does not."""
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space == resource.RLIM_INFINITY or space >= LEAST_SPACE:
        return ""
    least = LEAST_SPACE // 1024
    return f"the system lets this process have {space // 1024} kB of memory, and it needs {least}; raise it: ulimit -v {least}"
