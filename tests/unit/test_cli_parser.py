"""What can be typed, what it means, and what is refused with status 2."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import firstword.cli
from firstword.assets import Assets, AssetsError
from firstword.cli import voices
from firstword.cli.app import main, parser
from firstword.cli.speak import PASSAGES
from firstword.errors import FirstwordError


def test_up_has_the_usual_ports() -> None:
    options = parser().parse_args(["up"])
    assert (options.port, options.agent_port, options.log_dir) == (6379, None, None)
    options = parser().parse_args(["up", "--port", "7000", "--log-dir", "logs"])
    assert (options.port, options.log_dir) == (7000, Path("logs"))


def test_say_has_sensible_defaults() -> None:
    options = parser().parse_args(["say", "Hello."])
    assert (options.text, options.mode, options.compare) == ("Hello.", "stream", False)
    assert (options.out, options.tokens_per_second, options.play) == ("say.wav", 12.0, None)
    assert (options.voice, options.speed, options.lang, options.json) == (None, None, None, False)
    assert (options.passage, options.trials) == (None, 1)


def test_say_takes_every_option() -> None:
    words = "say - --voice bf_emma --speed 1.2 --lang en-gb --out - --tokens-per-second 0 --json"
    options = parser().parse_args([*words.split(), "--compare", "--no-play", "--timeout", "9"])
    assert (options.text, options.voice, options.speed) == ("-", "bf_emma", 1.2)
    assert (options.out, options.tokens_per_second, options.timeout) == ("-", 0.0, 9.0)
    assert (options.compare, options.json, options.play) == (True, True, False)


def test_say_has_passages_of_its_own() -> None:
    options = parser().parse_args(["say", "--passage", "long", "--compare", "--trials", "3"])
    assert (options.text, options.passage, options.trials) == (None, "long", 3)
    short, long = PASSAGES["short"], PASSAGES["long"]
    assert (short.count("."), long.count(".")) == (4, 10)
    assert 260 <= len(short) <= 275


def test_demo_and_up_take_the_way_to_the_container() -> None:
    for command in ("demo", "up"):
        assert parser().parse_args([command]).upstream == "websocket"
        assert parser().parse_args([command, "--upstream", "sagemaker"]).upstream == "sagemaker"
    with pytest.raises(SystemExit):
        parser().parse_args(["demo", "--upstream", "pigeon"])


def test_demo_writes_demo_wav() -> None:
    options = parser().parse_args(["demo", "--voice", "af_bella"])
    assert (options.out, options.tokens_per_second, options.voice) == ("demo.wav", 12.0, "af_bella")


def test_a_redis_command_is_taken_as_it_stands() -> None:
    words = ["XADD", "fw:text", "*", "session", "demo", "text", "-h --json", "end", "1"]
    options = parser().parse_args(["redis", *words])
    assert [options.name, *options.arguments] == words
    assert parser().parse_args(["redis", "PING"]).arguments == []


def test_listen_and_voices_fetch() -> None:
    options = parser().parse_args(["listen", "demo", "--from", "5-0", "--turns", "2"])
    assert (options.session, options.from_id, options.turns) == ("demo", "5-0", 2)
    options = parser().parse_args(["voices", "fetch", "--all", "--from", "folder"])
    assert (options.all, options.folder) == (True, Path("folder"))


def test_bench_tts() -> None:
    options = parser().parse_args(["bench", "tts", "--callers", "1,20", "--clips", "3"])
    assert (options.callers, options.clips, options.trials, options.url) == ([1, 20], 3, None, None)
    assert (options.out, options.quick, options.only) == (Path("bench-tts"), False, None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "COMMAND"),
        ("sing", "invalid choice"),
        ("say", "TEXT"),
        ("say hi --passage short", "not allowed with"),
        ("say --passage medium", "invalid choice"),
        ("say hi --trials 0", "at least 1"),
        ("say hi --speed 0", "from 0.5 to 2"),
        ("say hi --speed 99", "from 0.5 to 2"),
        ("say hi --tokens-per-second -1", "at least 0"),
        ("say hi --tokens-per-second nan", "at least 0"),
        ("say hi --mode batch --compare", "not allowed with"),
        ("up --port 0", "1 to 65535"),
        ("up --port 65536", "1 to 65535"),
        ("listen demo --turns 0", "at least 1"),
        ("redis", "COMMAND"),
        ("publish", "SESSION"),
        ("segment --mode fast", "invalid choice"),
        ("bench", "WHAT"),
        ("bench tts --callers 1,none", "whole number"),
        ("bench tts --trials 0", "at least 1"),
    ],
)
def test_wrong_usage_is_status_2(
    words: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words.split())
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        *("up", "demo", "say", "publish", "listen", "partition", "redis", "voices"),
        *("voices fetch", "segment", "bench tts", "version"),
    ],
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([*command.split(), "--help"])
    assert ended.value.code == 0
    assert f"usage: firstword {command}" in capsys.readouterr().out


def test_the_page_names_every_option_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "CLI.md").read_text(encoding="utf-8")
    synopses = re.findall(r"^    firstword ((?:.|\n {8,})+)$", page, re.MULTILINE)
    assert len(synopses) >= 10
    for synopsis in synopses:
        if "[SWITCHES]" in synopsis:
            continue  # they have a page of their own
        command = re.findall(r"^[a-z]+(?: (?:fetch|list|show|replay|tts))?", synopsis)[0].split()
        with pytest.raises(SystemExit):
            parser().parse_args([*command, "--help"])
        options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
        assert set(re.findall(r"--[a-z-]+", synopsis)) == options, synopsis


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment in which no server can be found."""
    monkeypatch.delenv("FIRSTWORD_REDIS_URL", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("words", ["redis PING", "publish demo", "listen demo"])
def test_without_a_server_one_line_says_what_to_do(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "firstword: no Redis server to use: start one with `firstword up`, or set "
        "FIRSTWORD_REDIS_URL to the URL of yours\n"
    )


@pytest.mark.usefixtures("no_server")
def test_a_partition_can_be_counted_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "demo"]) == 0
    out, err = capsys.readouterr()
    assert out == "0\n"  # crc32(b"demo") = 0xd642dfa0
    assert "16 partitions" in err
    assert main(["partition", "demo", "--partitions", "7"]) == 0
    assert capsys.readouterr() == (f"{0xD642DFA0 % 7}\n", "")


def test_a_bad_session_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partition", "no spaces"]) == 1
    assert "1 to 128 characters" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["publish", "listen"])
def test_a_session_has_a_name(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, ""]) == 1
    assert "session names are 1 to 128 characters" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("firstword 0.")


def test_voices_are_listed_with_where_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FIRSTWORD_MODEL_DIR", raising=False)
    assert main(["voices"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 54
    assert "af_heart       en-us  female  -  (default)" in lines
    assert "voices fetch --all" in err
    assert main(["voices", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert first == {
        "name": "af_alloy",
        "language": "en-us",
        "gender": "female",
        "installed": False,
        "speaks": True,
        "needs": None,
    }
    assert not any("cannot speak here" in line for line in lines), "every extra is installed"


def test_fetching_from_an_empty_folder_tells_what_was_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = AssetsError("assets_unreachable", "could not get model.onnx. Tried: a folder")

    def fetch(_environ: object, **options: object) -> Assets:
        assert (options["all_voices"], options["folder"]) == (True, Path("here"))
        raise tried

    monkeypatch.setattr("firstword.assets.fetch", fetch)
    assert main(["voices", "fetch", "--all", "--from", "here"]) == 1
    assert capsys.readouterr().err == f"firstword: {tried.message}\n"


def test_a_home_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("FIRSTWORD_MODEL_DIR", raising=False)
    assert main(["voices", "fetch"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"firstword: cannot keep weights and voices in {tmp_path}/file")
    assert err.endswith("(Not a directory): set XDG_CACHE_HOME to a folder that can be written\n")


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (FirstwordError("code", "do this"), 1, "firstword: do this\n"),
        (KeyboardInterrupt(), 130, ""),
        (OSError(28, "No space left"), 1, "firstword: input or output: No space left\n"),
        (
            OSError(13, "Permission denied", "/x"),
            1,
            "firstword: cannot use /x: Permission denied\n",
        ),
    ],
)
def test_how_a_command_can_end(
    raised: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> int:
        raise raised

    monkeypatch.setattr(voices, "run_list", fail)
    assert main(["voices"]) == status
    assert capsys.readouterr().err == said


def test_an_interrupt_while_python_imports_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("firstword.cli.app.main", interrupted)
    assert firstword.cli.main([]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_token_and_what_the_agent_is_told_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "web"]) == 0
    token, told = capsys.readouterr()
    assert len(token.strip()) >= 40
    digest = hashlib.sha256(token.strip().encode()).hexdigest()
    assert f"FIRSTWORD_API_TOKENS=web:{digest}" in told
    assert main(["token", "web"]) == 0
    assert capsys.readouterr().out != token
    assert main(["token", "a:b"]) == 1
    assert "token's name" in capsys.readouterr().err
