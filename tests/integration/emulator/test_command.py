"""`firstword emulate-sagemaker` as people run it."""

from __future__ import annotations

import asyncio
import re
import signal
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from firstword.cli.app import main
from firstword.emulator.signatures import KeyPair
from tests.command import begin, firstword
from tests.doubles.emulator_containers import AiohttpContainer
from tests.doubles.emulator_raw import RawClient, connected
from tests.doubles.emulator_signer import Signer
from tests.support import eventually


async def said(process: asyncio.subprocess.Process, last: str) -> str:
    """What it prints, up to a line with `last`."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(30):
        while not lines or last not in lines[-1]:
            line = await process.stdout.readline()
            assert line, f"it ended: {''.join(lines)}"
            lines.append(line.decode())
    return "".join(lines)


async def told(process: asyncio.subprocess.Process, what: str) -> None:
    """Wait for a line on standard error."""
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while what not in (line := (await process.stderr.readline()).decode()):
            assert line, f"it ended before saying {what!r}"


async def test_it_prints_what_a_client_needs_and_serves_until_ctrl_c(tmp_path: Path) -> None:
    async with AiohttpContainer() as container:
        process = await begin(
            *("emulate-sagemaker", "--container", container.url, "--port", "0"),
            *("--session-token", "a token", "--fault", "429@2", "--endpoint", "demo"),
            url=None,
            folder=tmp_path,
            environ={"XDG_STATE_HOME": str(tmp_path)},
        )
        try:
            text = await said(process, "FIRSTWORD_UPSTREAM")
            exports = dict(re.findall(r"export (\w+)=(.+)", text))
            assert exports["AWS_SESSION_TOKEN"] == "'a token'"
            assert exports["AWS_REGION"] == "us-east-1"
            uri = exports["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME_HTTP2"]
            ca = tmp_path / "firstword" / "emulator-ca.pem"
            assert f"CA to trust    {ca}" in text
            upstream = f"sagemaker://demo?region=us-east-1&endpoint_uri={uri}&ca={ca}"
            assert exports["FIRSTWORD_UPSTREAM"] == f"'{upstream}'"
            key = KeyPair(exports["AWS_ACCESS_KEY_ID"], exports["AWS_SECRET_ACCESS_KEY"], "a token")
            async with connected(uri, ca.read_text(), key) as client:
                await use(client, key)
            await told(process, "429 Rate exceeded")
        finally:
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        assert process.returncode == 0
        assert b"Traceback" not in err
        assert [path for path, _ in container.upgrades] == ["/invocations-bidirectional-stream"]


async def use(client: RawClient, key: KeyPair) -> None:
    stream = await (await client.open(Signer(key))).opened()
    await stream.send(b"hello")
    await eventually(lambda: stream.messages, "the echo comes")
    assert stream.messages[0].payload == b"hello"
    assert (await (await client.open(Signer(key))).opened()).status == 429


async def test_the_ca_goes_where_it_is_wanted(tmp_path: Path) -> None:
    process = await begin(
        *("emulate-sagemaker", "--container", "ws://127.0.0.1:1", "--port", "0"),
        *("--ca-out", "ca.pem"),
        url=None,
        folder=tmp_path,
    )
    try:
        await said(process, "FIRSTWORD_UPSTREAM")
        ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["--container", "http://x:1"], 1, "must be like ws://127.0.0.1:8080"),
        (["--container", "ws://x:1", "--fault", "explode"], 2, "KIND one of"),
        (["--container", "ws://x:1", "--ping-s", "0"], 2, "greater than 0"),
        (["--container", "ws://x:1", "--port", "65536"], 2, "from 0 to 65535"),
        (["--container", "ws://x:1", "--port", "0", "--host", "192.0.2.1"], 1, "another --host"),
        (["--container", "ws://x:1", "--port", "0", "--host", "no.invalid"], 1, "another --host"),
        (["--container", "ws://x:1", "--port", "0", "--ca-out", "/dev/full"], 1, "to /dev/full ("),
        ([], 2, "--container"),
    ],
)
async def test_what_is_wrong_is_told(
    words: list[str], status: int, complaint: str, tmp_path: Path
) -> None:
    ended = await firstword("emulate-sagemaker", *words, url=None, folder=tmp_path)
    assert ended.status == status
    assert complaint in ended.err


def test_without_its_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "firstword.emulator.server", None)
    assert main(["emulate-sagemaker", "--container", "ws://x:1"]) == 1
    assert "pip install 'firstword[emulator]'" in capsys.readouterr().err


async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async with AiohttpContainer() as container:
        port = str(urlsplit(container.url).port)
        ended = await firstword(
            *("emulate-sagemaker", "--container", container.url, "--port", port),
            url=None,
            folder=tmp_path,
        )
    assert ended.status == 1
    assert ended.err == f"firstword: port {port} is taken: choose another --port\n"
