"""Why a backend cannot be reached, in a few words: aiohttp's own are long, and some many lines."""

from __future__ import annotations

import errno
import os
import ssl

import aiohttp


def reason(error: Exception) -> str:
    """In one line."""
    match error:
        case aiohttp.WSServerHandshakeError():
            return f"it answers with HTTP status {error.status}"
        case aiohttp.ClientResponseError():
            return "what answers does not speak HTTP"
        case aiohttp.InvalidURL():
            return "that is no URL"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientConnectorError():
            return _of_system(error.os_error)
        case OSError():
            return _of_system(error)
    return " ".join(str(error).split()) or type(error).__name__


def _of_system(error: OSError) -> str:
    """The system's words for it; names that lead nowhere and TLS have words of their own."""
    if not isinstance(error, ssl.SSLError) and (error.errno or 0) in errno.errorcode:
        return os.strerror(error.errno or 0)
    return error.strerror or str(error) or type(error).__name__
