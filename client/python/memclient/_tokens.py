# SPDX-License-Identifier: Apache-2.0
"""Tokens: 32 bytes that let their bearer open a buffer."""

from __future__ import annotations

from typing import Any

from . import _memclient
from ._rights import Right

__all__ = ["Token", "revoke"]

_SIZE = 32


class Token(bytes):
    """32 opaque bytes that let their bearer open a buffer, wherever that is.

    It is made by `Buffer.share`, and compares, hashes and travels as bytes do: `bytes(token)`, `token.hex()`,
    `Token.fromhex(text)`. Whoever has the bytes may use them, so neither repr() nor str() shows more than the first
    few, which are no secret; nor does a traceback.

    ValueError: it is made of more or fewer bytes.
    """

    #: What it grants, if it was made by this program; else None.
    rights: Right | None = None

    def __new__(cls, value: Any, rights: Right | None = None) -> Token:
        if isinstance(value, (int, str)):
            raise TypeError(f"a token is made of {_SIZE} bytes, not of {type(value).__name__}; see Token.fromhex()")
        self = super().__new__(cls, value)
        if len(self) != _SIZE:
            raise ValueError(f"a token has {_SIZE} bytes, not {len(self)}")
        self.rights = rights
        return self

    def __repr__(self) -> str:
        # the broker's number, the format, and the serial: what listings show; the secret is the second half
        return f"<memclient.Token {self[:4].hex()}:{int.from_bytes(self[8:16], 'little')}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (bytes(self), self.rights)


def revoke(token: bytes) -> None:
    """Revokes a token: nobody can open anything with it any more. What was opened with it stays open.

    TokenError: it is none, or has ended already. NoRight: it is another user's.
    """
    _memclient.revoke_token(token)
