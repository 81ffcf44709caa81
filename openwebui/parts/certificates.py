"""Whom to trust behind https. Read once: it takes a tenth of a second, in which Open WebUI would serve nobody."""

import asyncio
import functools
import os
import ssl

import httpx


async def trust(url: str) -> ssl.SSLContext | bool:
    """What httpx calls `verify`. Raises OSError if the certificates that the environment names cannot be read."""
    if not url.startswith("https:"):
        return False
    names = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    return await asyncio.to_thread(certificates_of, *names)


@functools.cache
def certificates_of(_file: str, _folder: str) -> ssl.SSLContext:
    """httpx looks at the same two variables by itself; here they are what it is remembered by."""
    return httpx.create_ssl_context(verify=True, trust_env=True)
