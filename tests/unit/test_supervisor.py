"""What the supervisor reads in the logs of its services."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstword.supervisor import last_lines, ready_address


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (b'{"event": "ready", "http": "127.0.0.1:80", "more": 1}\n', "127.0.0.1:80"),
        (b'{"event": "started", "http": "127.0.0.1:80"}\n', None),
        (b'{"event": "started", "was": "ready", "http": "127.0.0.1:80"}\n', None),
        (b'{"event": "ready", "http": 80}\n', None),
        (b'["ready"]\n', None),
        (b'{"event": "ready"\n', None),
        (b"ready\n", None),
    ],
)
def test_the_ready_line(line: bytes, address: str | None) -> None:
    assert ready_address(line) == address


@pytest.mark.parametrize(
    ("pid", "address"), [(7, "127.0.0.1:80"), (8, None), (None, "127.0.0.1:80")]
)
def test_the_ready_line_of_one_process(pid: int | None, address: str | None) -> None:
    line = b'{"event": "ready", "http": "127.0.0.1:80", "pid": 7}\n'
    assert ready_address(line, pid) == address


def test_a_ready_line_that_names_no_process_is_nobodys() -> None:
    assert ready_address(b'{"event": "ready", "http": "127.0.0.1:80"}\n', 7) is None


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert last_lines(log) == []
    log.write_bytes(b"".join(b"%05d\xff\x07\n" % number for number in range(5000)))
    assert last_lines(log, 2) == ["04998\ufffd ", "04999\ufffd "]
