"""How many files a process may have open: a thousand streams need more than many systems give by themselves."""

import resource

WANTED = 8192


def raise_file_limit() -> None:
    """As far as this process may; those that it starts inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
