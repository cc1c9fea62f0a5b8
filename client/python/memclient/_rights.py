# SPDX-License-Identifier: Apache-2.0
"""What a holder of a buffer may do."""

from __future__ import annotations

import enum

__all__ = ["Right", "READ", "WRITE", "SHARE", "MANAGE"]


class Right(enum.IntFlag):
    """Rights are a bit mask. The kernel enforces READ and WRITE.

    READ    read and map it
    WRITE   write to it; implies READ
    SHARE   make tokens with a subset of one's own rights
    MANAGE  publish, bind names, revoke others' tokens, discard, move
    """

    READ = 1
    WRITE = 2
    SHARE = 4
    MANAGE = 8


READ = Right.READ
WRITE = Right.WRITE
SHARE = Right.SHARE
MANAGE = Right.MANAGE

_LETTERS = {"r": READ, "w": READ | WRITE, "s": SHARE, "m": MANAGE}


def parse(rights: int | str | None) -> int:
    """The number of `rights`: a Right, or a text of letters as "r" and "rw"; None = 0, the default."""
    if rights is None:
        return 0
    if isinstance(rights, str):
        if not rights or set(rights) - set(_LETTERS):
            raise ValueError(f"rights are of the letters r, w, s and m, not {rights!r}")
        number = 0
        for letter in rights:
            number |= _LETTERS[letter]
        return int(number)
    if isinstance(rights, bool) or not isinstance(rights, int):
        raise TypeError(f"rights are a memclient.Right or a str, not {type(rights).__name__}")
    if not 0 < rights < 16:
        raise ValueError(f"no rights: {rights!r}")
    if rights & WRITE:
        rights |= READ
    return int(rights)
