"""Who is let in, from where, and how much of it each may have."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.access import (
    EVERYONE,
    AccessError,
    Caller,
    Ledger,
    Origins,
    Patience,
    Quota,
    check_exposure,
    check_host,
    cors_headers,
    identify,
    is_loopback,
    preflight_headers,
    presented,
    read_origins,
    read_tokens,
)
from services.agent.core import RequestError

ALICE = Caller("alice")


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


TOKENS = read_tokens(f"alice:{digest('a-secret')}, bob:{digest('b-secret').upper()}")


# -- tokens ---------------------------------------------------------------------------------------


def test_a_token_is_its_callers() -> None:
    assert identify("a-secret", TOKENS) == ALICE
    assert identify("b-secret", TOKENS) == Caller("bob")


@pytest.mark.parametrize("secret", [None, "", "c-secret", "a-secret ", "\udc80"])
def test_any_other_is_nobodys(secret: str | None) -> None:
    with pytest.raises(AccessError) as raised:
        identify(secret, TOKENS)
    assert (raised.value.code, raised.value.status) == ("unauthorized", 401)
    assert secret is None or not secret.strip() or secret not in raised.value.message


def test_a_token_does_not_show_in_a_trace() -> None:
    assert digest("a-secret") not in repr(TOKENS) and "digest" not in repr(TOKENS)


@pytest.mark.parametrize("setting", ["", "  "])
def test_no_tokens_are_none(setting: str) -> None:
    assert read_tokens(setting) == ()


@pytest.mark.parametrize(
    "setting",
    [
        "secret",
        "alice:",
        "alice:abc",
        f":{'0' * 64}",
        f"al ice:{'0' * 64}",
        f"alice:{'0' * 64},alice:{'1' * 64}",
        f"alice:{'0' * 64},",
        f"{'x' * 33}:{'0' * 64}",
    ],
)
def test_wrong_tokens_are_told_without_being_shown(setting: str) -> None:
    with pytest.raises(AccessError, match="firstword token NAME") as raised:
        read_tokens(setting)
    assert "0" * 64 not in raised.value.message and "secret" not in raised.value.message


@pytest.mark.parametrize(
    ("header", "protocols", "secret"),
    [
        ("Bearer abc", [], "abc"),
        ("bearer  abc ", [], "abc"),
        ("Basic abc", [], None),
        ("Bearer", [], None),
        (None, [], None),
        (None, ["firstword", "firstword.bearer.abc"], "abc"),
        ("Bearer abc", ["firstword.bearer.other"], "abc"),
    ],
)
def test_where_a_token_may_stand(
    header: str | None, protocols: list[str], secret: str | None
) -> None:
    assert presented(header, protocols) == secret


def test_each_caller_has_sessions_of_its_own() -> None:
    assert ALICE.full("demo") == "alice:demo"
    assert ALICE.own("alice:demo") == "demo"
    assert EVERYONE.full("demo") == EVERYONE.own("demo") == "demo"
    with pytest.raises(RequestError):
        ALICE.full("no good")
    with pytest.raises(RequestError):
        ALICE.full("x" * 128)


@given(st.from_regex(r"[A-Za-z0-9_.:-]{1,60}", fullmatch=True))
def test_no_name_of_a_session_leads_to_another_callers(name: str) -> None:
    assert ALICE.own(ALICE.full(name)) == name
    assert not ALICE.full(name).startswith("bob:")


# -- from where -----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    check_exposure(host, ())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", ""])
def test_other_machines_need_one(host: str) -> None:
    with pytest.raises(AccessError, match="FIRSTWORD_API_TOKENS"):
        check_exposure(host, ())
    check_exposure(host, TOKENS)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:80", "[::1]:8000"])
def test_who_means_this_machine_is_heard(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[", "@"]
)
def test_another_name_for_this_machine_is_refused(host: str | None) -> None:
    with pytest.raises(AccessError) as raised:
        check_host(host)
    assert (raised.value.code, raised.value.status) == ("bad_host", 403)


def test_our_own_page_may_ask_and_a_listed_one() -> None:
    origins = read_origins("https://app.example, http://localhost:5173")
    assert not origins.is_other(None, "here:8000")
    assert not origins.is_other("http://here:8000", "here:8000")
    assert origins.is_other("https://app.example", "here:8000")
    assert origins.is_other("http://localhost:5173", "here:8000")


@pytest.mark.parametrize(
    "origin", ["null", "https://app.example.evil", "https://app.example:444", "http://[", "*"]
)
def test_no_other_page_may(origin: str) -> None:
    with pytest.raises(AccessError) as raised:
        read_origins("https://app.example").is_other(origin, "here:8000")
    assert (raised.value.code, raised.value.status) == ("bad_origin", 403)


@pytest.mark.parametrize("setting", ["*", "app.example", "https://a.b/path", "ftp://a", "http://["])
def test_origins_are_exact(setting: str) -> None:
    with pytest.raises(AccessError, match="is no origin"):
        read_origins(setting)


def test_no_origins_are_none() -> None:
    assert read_origins("") == Origins()


def test_what_a_page_of_another_site_is_told() -> None:
    told = cors_headers("https://app.example")
    assert told["Access-Control-Allow-Origin"] == "https://app.example"
    assert told["Vary"] == "Origin"
    assert "Access-Control-Allow-Credentials" not in told
    assert (
        "Authorization" in preflight_headers("https://app.example")["Access-Control-Allow-Headers"]
    )


# -- how much -------------------------------------------------------------------------------------


def test_so_many_sessions_and_no_more() -> None:
    ledger = Ledger(Quota(sessions=2))
    for session in ("one", "two", "one"):
        ledger.enter(ALICE, session, 0)
    with pytest.raises(AccessError) as raised:
        ledger.enter(ALICE, "three", 0)
    assert (raised.value.status, raised.value.retry_after_s) == (429, 5)
    assert raised.value.retryable
    ledger.enter(Caller("bob"), "three", 0)
    ledger.leave(ALICE, "one")
    assert ledger.open_sessions(ALICE) == 2, "another use of it is left"
    ledger.leave(ALICE, "one")
    ledger.enter(ALICE, "three", 0)
    assert ledger.open_sessions(ALICE) == 2
    assert ledger.open_sessions(Caller("nobody")) == 0


def test_so_many_characters_a_minute() -> None:
    ledger = Ledger(Quota(characters_per_minute=600))
    ledger.spend(ALICE, 600, 100)
    with pytest.raises(AccessError) as raised:
        ledger.spend(ALICE, 30, 101)
    assert (raised.value.code, raised.value.status, raised.value.retry_after_s) == ("quota", 429, 2)
    ledger.spend(ALICE, 30, 103)
    ledger.spend(Caller("bob"), 600, 103)
    with pytest.raises(AccessError, match="send it in parts"):
        ledger.spend(ALICE, 601, 1e6)


def test_what_was_written_is_waited_for() -> None:
    ledger = Ledger(Quota(characters_per_minute=60))
    ledger.charge(ALICE, 90, 0)
    with pytest.raises(AccessError) as raised:
        ledger.spend(ALICE, 10, 0)
    assert raised.value.retry_after_s == 40
    ledger.spend(ALICE, 10, 40)


@pytest.mark.parametrize("caller", [ALICE, EVERYONE])
def test_without_limits_there_are_none(caller: Caller) -> None:
    ledger = Ledger(Quota() if caller is ALICE else Quota(1, 1))
    for number in range(100):
        ledger.enter(caller, f"s{number}", 0)
        ledger.spend(caller, 10**6, 0)
    assert ledger.open_sessions(caller) == 100


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 100)), max_size=30))
def test_never_more_than_a_minutes_worth_ahead(steps: list[tuple[float, int]]) -> None:
    ledger, now, spent = Ledger(Quota(characters_per_minute=60)), 0.0, 0
    for wait, characters in steps:
        now += wait
        try:
            ledger.spend(ALICE, characters, now)
            spent += characters
        except AccessError:
            pass
    assert spent <= 60 + now + 1e-6


# -- how slowly -----------------------------------------------------------------------------------


def test_who_takes_nothing_is_cut_and_who_takes_little_is_not() -> None:
    gone = Patience(10)
    assert [gone.is_over(at, waiting=True, held=100) for at in (0, 5, 9.9, 10)] == [
        *[False] * 3,
        True,
    ]
    slow = Patience(10)
    assert not any(slow.is_over(at, waiting=True, held=100 - at) for at in range(0, 90, 9))


def test_time_in_which_nothing_waits_does_not_count() -> None:
    patience = Patience(10)
    assert not patience.is_over(0, waiting=True, held=100)
    assert not patience.is_over(9, waiting=False, held=100)
    assert not patience.is_over(18, waiting=True, held=100)
    assert not patience.is_over(27, waiting=True, held=100)
    assert patience.is_over(28, waiting=True, held=100)
