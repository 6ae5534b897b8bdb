"""The parts of a SageMaker stream, joined to the frames that the container sent."""

from __future__ import annotations

from dataclasses import dataclass

from firstword.errors import UpstreamError
from firstword.session_protocol import MAX_SERVER_FRAME_BYTES, Frame

UTF8, BINARY = "UTF8", "BINARY"
PARTIAL, COMPLETE = "PARTIAL", "COMPLETE"


@dataclass(frozen=True, slots=True)
class Part:
    """One payload part; a field is None if the service did not set it."""

    data: bytes
    data_type: str | None = None
    completion_state: str | None = None


class Joiner:
    """One container frame is one part, unless the container sent it in fragments itself."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._data_type: str | None = None

    def add(self, part: Part) -> tuple[Frame, bool | None] | None:
        """The frame that this part completes, and whether it is text (None: unknown).

        Raises UpstreamError for a frame too large to be read.
        """
        if not self._held:
            self._data_type = part.data_type
        if len(self._held) + len(part.data) > MAX_SERVER_FRAME_BYTES:
            told = f"the container sent a frame of more than {MAX_SERVER_FRAME_BYTES} bytes"
            raise UpstreamError("upstream_lost", told, retryable=True)
        if part.completion_state == PARTIAL:
            self._held += part.data
            return None
        data, self._held = bytes(self._held + part.data), bytearray()
        return _frame(data, self._data_type)


def _frame(data: bytes, data_type: str | None) -> tuple[Frame, bool | None]:
    if data_type == BINARY:
        return data, False
    if data_type != UTF8:
        return data, None
    try:
        return data.decode(), True
    except UnicodeDecodeError:
        return data, True  # the session protocol says what is wrong with it
