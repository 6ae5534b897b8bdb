"""Where a container takes sessions."""

from __future__ import annotations

import pytest

from firstword.session_address import PATH, whole


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://host:8080", f"ws://host:8080{PATH}"),
        ("ws://host:8080/", f"ws://host:8080{PATH}"),
        ("wss://host", f"wss://host{PATH}"),
        ("ws://host:8080?key=1", f"ws://host:8080{PATH}?key=1"),
        ("ws://[::1]:8080", f"ws://[::1]:8080{PATH}"),
        (f"ws://host:8080{PATH}", f"ws://host:8080{PATH}"),
        ("ws://host:8080/other", "ws://host:8080/other"),
        ("sagemaker://endpoint", "sagemaker://endpoint"),
        ("openai+http://host:8880", "openai+http://host:8880"),
        ("ws://[::1", "ws://[::1"),
        ("", ""),
    ],
)
def test_a_container_without_a_path_has_the_usual_one(url: str, expected: str) -> None:
    assert whole(url) == expected
    assert whole(whole(url)) == expected
