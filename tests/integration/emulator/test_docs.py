"""The emulator's page: its client runs as it stands, and its tables name every fault and switch."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from firstword.cli.app import parser
from firstword.emulator.faults import Kind
from firstword.emulator.server import Emulator
from firstword.emulator.settings import Settings
from tests.doubles.emulator_containers import AiohttpContainer

PAGE = Path(__file__).parents[3].joinpath("docs", "EMULATOR.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="SageMaker's official client needs Python 3.12"
)
async def test_the_client_of_the_page_runs_with_what_the_command_prints(tmp_path: Path) -> None:
    ca, program = tmp_path / "ca.pem", tmp_path / "client.py"
    async with (
        AiohttpContainer() as container,
        Emulator(Settings(container.url)) as emulator,
    ):
        ca.write_bytes(emulator.ca_pem)
        program.write_text(EXAMPLES[0], encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, program),
            env={
                "HOME": str(tmp_path),
                "SAGEMAKER_CA": str(ca),
                "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME_HTTP2": emulator.uri,
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": emulator.settings.key.access_key_id,
                "AWS_SECRET_ACCESS_KEY": emulator.settings.key.secret,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
    assert (process.returncode, out.decode()) == (0, "UTF8 b'hello'\n")


async def test_the_python_interface_of_the_page_is_as_it_says() -> None:
    lines = "".join(f"    {line}\n" for line in EXAMPLES[1].splitlines())
    scope: dict[str, object] = {}
    exec(f"async def example():\n{lines}", scope)
    await scope["example"]()  # type: ignore[operator]


def test_every_fault_stands_there() -> None:
    assert {kind.value for kind in Kind} <= set(re.findall(r"`([\w-]+)[\[=`]", PAGE))


def test_every_switch_of_the_command_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["emulate-sagemaker", "--help"])
    switches = set(re.findall(r"--[\w-]+", capsys.readouterr().out)) - {"--help"}
    assert switches <= set(re.findall(r"--[\w-]+", PAGE))
