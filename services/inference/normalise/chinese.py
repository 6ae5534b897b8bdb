"""Names of whole numbers in Chinese characters. Pure."""

from __future__ import annotations

from typing import Final

_DIGITS: Final = "零一二三四五六七八九"
_SCALES: Final = (
    (10**12, "万亿"),
    (10**8, "亿"),
    (10**4, "万"),
    (1000, "千"),
    (100, "百"),
    (10, "十"),
)


def cardinal(value: int) -> str:
    """The name of a non-negative number below 10**16: 一千零五 for 1005."""
    name = _name(value)
    return name.removeprefix("一") if name.startswith("一十") else name


def _name(value: int) -> str:
    if value < 10:
        return _DIGITS[value]
    scale, sign = next(pair for pair in _SCALES if value >= pair[0])
    count, rest = divmod(value, scale)
    name = ("两" if count == 2 and scale > 100 else _name(count)) + sign
    if not rest:
        return name
    return name + ("零" if rest < scale // 10 else "") + _name(rest)
