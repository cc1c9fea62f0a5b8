# SPDX-License-Identifier: Apache-2.0
"""Seconds, as Python has them, in milliseconds, as the library has them."""

from __future__ import annotations

import math

FOREVER = 2**64 - 1


def milliseconds(seconds: float, what: str) -> int:
    """Rounded up, so that nothing positive becomes 0."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{what} is a number of seconds, not {type(seconds).__name__}")
    if not seconds >= 0:
        raise ValueError(f"{what} is a number of seconds, 0 or more, not {seconds!r}")
    # longer than that is longer than any machine runs
    return FOREVER if seconds > 2**53 else math.ceil(seconds * 1000)
