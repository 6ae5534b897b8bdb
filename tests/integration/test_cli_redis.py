"""`firstword redis` and `firstword partition` on a real server."""

from __future__ import annotations

import pytest

from firstword import codec, keys
from firstword.cli import main


@pytest.fixture(autouse=True)
def in_use(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", redis_url)


def test_a_line_of_a_shell_publishes_text(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["session", "demo", "text", "Hello there. How are you?", "end", "1"]
    assert main(["redis", "XADD", keys.DOOR, "*", *words]) == 0
    entry_id = capsys.readouterr().out.strip()
    assert main(["redis", "XRANGE", keys.DOOR, "-", "+"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [entry_id, *words]
    pairs = iter(word.encode() for word in words)
    text, end = codec.decode_ingress(dict(zip(pairs, pairs, strict=True)))
    assert (codec.TYPE_OF[type(text)], codec.TYPE_OF[type(end)]) == ("text", "end")


def test_bytes_go_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redis", "SET", "fw:x", "caf\udce9"]) == 0  # how Python passes on the byte E9
    assert main(["redis", "STRLEN", "fw:x"]) == 0
    assert capsys.readouterr().out == "OK\n4\n"


def test_an_error_of_the_server_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redis", "NONSENSE"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("(error) unknown command 'NONSENSE'")


def test_a_server_that_is_not_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", "redis://:secret@127.0.0.1:1/0")
    assert main(["redis", "PING"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("firstword: no Redis server answers at redis://127.0.0.1:1/0")
    assert "secret" not in err


def test_a_url_that_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTWORD_REDIS_URL", "127.0.0.1:6379")
    assert main(["redis", "PING"]) == 1
    assert "Redis URL" in capsys.readouterr().err
    assert main(["partition", "demo"]) == 1
    assert "no Redis URL" in capsys.readouterr().err


def test_the_partition_goes_by_the_deployments_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "demo"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{keys.partition_of('demo', 16)}\n"
    assert "No segmenter has started there yet" in err
    assert main(["redis", "HSET", keys.CONFIG, "partitions", "7"]) == 0
    capsys.readouterr()
    assert main(["partition", "demo"]) == 0
    assert capsys.readouterr() == (f"{keys.partition_of('demo', 7)}\n", "")
