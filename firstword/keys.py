"""Names of the Redis keys, and which partition a session belongs to.

Braces are literal hash tags: all keys of a session are in one cluster slot, so that one script may
touch all of them; so are those of a partition, and a stage's ownership tables.
"""

from __future__ import annotations

import re
import zlib

from firstword.errors import DecodeError

DOOR = "fw:text"
DEAD = "fw:dead"
CONFIG = "fw:config"
DEFAULT_PARTITIONS = 16
MAX_PARTITIONS = 1024
DEFAULT_MAX_QUEUED = 200  # segments of a session that may wait to be spoken

NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)


def check_name(kind: str, value: str) -> str:
    """Return `value` if it may name a session or a turn, else raise DecodeError."""
    if not NAME.fullmatch(value):
        raise DecodeError(
            "bad_name", f"{kind} names are 1 to 128 characters of A-Z a-z 0-9 . _ : and -"
        )
    return value


def partition_of(session: str, partitions: int) -> int:
    """The ingress partition of a session: crc32 of its UTF-8 name, modulo the partition count."""
    return zlib.crc32(session.encode()) % partitions


def ingress(partition: int) -> str:
    """The stream that a partition's publishers append to."""
    return f"fw:text:{{{partition}}}"


def ingress_of(session: str, partitions: int | None) -> str:
    """The stream that a session's publishers append to: the door if there are no partitions."""
    return DOOR if partitions is None else ingress(partition_of(session, partitions))


def ingress_stream(unit: str) -> str:
    """The ingress stream of a segmenter's unit: `door`, or a partition's number in digits."""
    return DOOR if unit == "door" else ingress(int(unit))


def ingress_state(unit: str) -> str:
    """Hash of an ingress stream's reader: fencing token and cursor; in the stream's slot."""
    return f"{_slot(unit)}:state"


def ingress_open(unit: str) -> str:
    """Sorted set: sessions of a partition that its segmenter holds; in its slot."""
    return f"{_slot(unit)}:open"


def _slot(unit: str) -> str:
    return f"fw:{{{DOOR}}}" if unit == "door" else ingress(int(unit))


def segments(session: str) -> str:
    """Stream segmenter -> gateway."""
    return f"fw:{{{session}}}:segments"


def audio(session: str) -> str:
    """Stream gateway -> listeners."""
    return f"fw:{{{session}}}:audio"


def text_state(session: str) -> str:
    """Hash: the segmenter's token, revision, position and state, and what it has taken."""
    return f"fw:{{{session}}}:text"


def speech_state(session: str) -> str:
    """Hash: the gateway's token, revision, position and progress, and the cancelled turns."""
    return f"fw:{{{session}}}:speech"


def workers(stage: str) -> str:
    """Sorted set: worker -> end of its lease, milliseconds on the server's clock."""
    return f"fw:{{ctl:{stage}}}:workers"


def draining(stage: str) -> str:
    """Set: workers that take nothing new because they are about to stop."""
    return f"fw:{{ctl:{stage}}}:draining"


def free(stage: str) -> str:
    """Sorted set: units nobody owns -> since when (server milliseconds)."""
    return f"fw:{{ctl:{stage}}}:free"


def owned(stage: str) -> str:
    """Sorted set of `worker unit` pairs, ordered by name so that a worker's units are a range."""
    return f"fw:{{ctl:{stage}}}:owned"


def owners(stage: str) -> str:
    """Hash: unit -> worker."""
    return f"fw:{{ctl:{stage}}}:owners"


def arrivals(stage: str) -> str:
    """Stream rung when a unit becomes free, so that a worker claims it at once."""
    return f"fw:{{ctl:{stage}}}:arrivals"


def bell(stage: str, worker: str) -> str:
    """Stream of unit names: a unit that this worker owns has something new. A ring may be lost."""
    return f"fw:{{ctl:{stage}}}:bell:{worker}"
