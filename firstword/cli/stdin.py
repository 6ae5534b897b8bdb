"""Standard input as text, piece by piece as it comes."""

from __future__ import annotations

import asyncio
import codecs
import os
import threading
from collections.abc import AsyncIterator

_BLOCK = 65_536


async def pieces(descriptor: int = 0) -> AsyncIterator[str]:
    """What has come, as soon as it has come, until the end of the input. UTF-8; what is not
    becomes U+FFFD.

    A thread reads: an event loop cannot wait for files, and a program must be able to end while a
    read is blocked. It waits until a piece is taken before it reads the next.
    """
    loop = asyncio.get_running_loop()
    came: asyncio.Queue[bytes] = asyncio.Queue()
    wanted = threading.Semaphore(0)

    def read() -> None:
        data = b"more"
        while data:
            wanted.acquire()
            try:
                data = os.read(descriptor, _BLOCK)
            except OSError:  # the terminal has gone: as good as the end
                data = b""
            try:
                loop.call_soon_threadsafe(came.put_nowait, data)
            except RuntimeError:  # the loop is closed: nobody wants it any more
                return

    threading.Thread(target=read, name="standard input", daemon=True).start()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    data = b"more"
    while data:
        wanted.release()
        data = await came.get()
        if text := decoder.decode(data, final=not data):
            yield text
