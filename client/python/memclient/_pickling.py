# SPDX-License-Identifier: Apache-2.0
"""Pickles that refer to memory: the token that such a pickle carries, and its way back to a buffer.

A pickle of an array is a token and a geometry. The token keeps the buffer, so the memory is there for whoever loads the
pickle, even if the sender has ended; and it expires, so nothing is left of a pickle that nobody loads. One token serves
all pickles of a buffer for a while, so that sending the same array again makes no call.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _memclient
from ._rights import READ, SHARE, WRITE
from ._times import milliseconds
from .errors import Published

if TYPE_CHECKING:
    from ._buffers import Buffer

__all__ = ["Pickling", "set_pickling"]


class Pickling(NamedTuple):
    """How arrays and tensors are pickled; see set_pickling()."""

    keep: float
    uses: int | None
    readonly: bool


_settings = Pickling(60.0, None, False)

# what a token of a pickle may grant, as a number: the complement of a Right has only the bits that Right knows
_READ, _WRITE, _GRANTED = int(READ), int(WRITE), int(READ | WRITE | SHARE)
_READER = int(READ | SHARE)

# a flag of memclient_share_options
_KEEPING = 1

# a token lasts longer than a pickle has to by this share of the time, for which it serves other pickles
_SERVES = 0.25


_Granted = tuple[bytes, int, bool]


class _Kept(NamedTuple):
    token: bytes
    expires: float


# by buffer and rights; numbers of buffers are never used again
_kept: dict[tuple[int, int], _Kept] = {}
_kept_limit = 256

# by token and rights, and not by the buffer's number, which a sender could make up. A plain dictionary, which is tidied
# up now and then: the caches of the processor have seldom any of this code in them when an array arrives, and a
# WeakValueDictionary has much
_opened: dict[tuple[bytes, int], weakref.ref[Buffer]] = {}
_opened_limit = 256


def set_pickling(*, keep: float = 60, uses: int | None = None, readonly: bool = False) -> Pickling:
    """Sets how arrays and tensors are pickled from now on, by all threads of this process. Returns how it was.

    keep      seconds for which a pickle keeps its memory, and up to a quarter longer. Until then it may be loaded any
              number of times, whatever becomes of the sender; afterwards that is a TokenError. What was loaded stays as
              long as it is used. The memory is freed when the time is over and nobody has it
    uses      how often a pickle may be loaded; by default any number of times. Its memory is kept no longer than that.
              Such a pickle has a token of its own: what is sent again costs another call of the broker
    readonly  True: arrays arrive read-only. By default those do that are read-only where they are pickled

    Without arguments: as it is at first. A producer of a stream, whose memory would be all in flight before the first
    of it expires, tells the number of its consumers by `uses`, or uses its arrays again.

    To restore: set_pickling(**before._asdict()). ValueError: not more than 0 seconds, or less than one use.
    """
    global _settings
    if isinstance(keep, bool) or not isinstance(keep, (int, float)):
        raise TypeError(f"keep is a number of seconds, not {type(keep).__name__}")
    if not keep > 0:
        raise ValueError(f"keep is more than 0 seconds, not {keep!r}")
    if uses is not None:
        if isinstance(uses, bool) or not isinstance(uses, int):
            raise TypeError(f"uses is a number, not {type(uses).__name__}")
        if not 0 < uses < 2**32:
            raise ValueError(f"uses is 1 or more, not {uses}")
    before = _settings
    _settings = Pickling(keep, uses, bool(readonly))
    _kept.clear()
    return before


def settings() -> Pickling:
    """How it is now."""
    return _settings


def keep_token(buffer: Buffer, writable: bool) -> _Granted:
    """A token that keeps the buffer as the settings say, the rights that it grants, and whether its uses are counted.

    Whoever loads a pickle may pickle the array again, so SHARE is among them. NoRight: `buffer` lacks that.
    """
    return find_token(buffer.id, writable) or make_token(buffer, writable)


def find_token(number: int, writable: bool) -> _Granted | None:
    """The same, if there is one of this buffer that serves."""
    keep, uses, readonly = _settings
    rights = _GRANTED if writable and not readonly else _READER
    kept = _kept.get((number, rights))
    # time in which the machine sleeps counts
    if kept is None or uses is not None or kept.expires < time.clock_gettime(time.CLOCK_BOOTTIME) + keep:
        return None
    return kept.token, rights, False


def make_token(buffer: Buffer, writable: bool) -> _Granted:
    """The same, a new one."""
    keep, uses, readonly = _settings
    rights = _GRANTED if writable and not readonly else _READER
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    expires = keep * (1 + _SERVES)
    # what Buffer.share() would make of it, which costs as much as the call where the processor's caches are cold
    options = {"rights": rights, "flags": _KEEPING, "expiry_ms": milliseconds(expires, "keep")}
    if uses is not None:
        options["uses"] = uses
    token: bytes = buffer._share(options)
    if uses is None:
        _keep((buffer.id, rights), _Kept(token, now + expires), now)
    return token, rights, uses is not None


def _keep(key: tuple[int, int], kept: _Kept, now: float) -> None:
    global _kept_limit
    if len(_kept) >= _kept_limit:
        for other, old in list(_kept.items()):
            if old.expires <= now:
                _kept.pop(other, None)
        _kept_limit = max(256, 2 * len(_kept))
    _kept[key] = kept


def forget_tokens(number: int) -> None:
    """The tokens of a buffer were revoked."""
    for key in list(_kept):
        if key[0] == number:
            _kept.pop(key, None)


def open_kept(kind: type[Buffer], token: bytes, rights: int, counted: bool) -> Buffer:
    """The buffer of a pickle's token. What arrives again while it is open needs no call, unless uses are counted.

    Memory that the broker did not allocate could shrink under the array, and is refused.
    """
    if not isinstance(token, bytes) or not isinstance(rights, int):
        raise TypeError("this is no pickle of memclient's")
    rights = int(rights)
    if not rights & _READ or rights & ~_GRANTED:
        raise ValueError(f"no rights of a pickle: {rights}")
    key = (token, rights)
    opened = None if counted else _opened.get(key)
    buffer = opened() if opened is not None else None
    if buffer is None or buffer.closed:
        try:
            buffer = _memclient.open_token(kind, token, rights)
        except Published:
            # since it was pickled
            buffer = _memclient.open_token(kind, token, rights & ~_WRITE)
        if not counted:
            _note_opened(key, buffer)
    return buffer


def _note_opened(key: tuple[bytes, int], buffer: Buffer) -> None:
    global _opened_limit
    if len(_opened) >= _opened_limit:
        for other, reference in list(_opened.items()):
            if reference() is None:
                _opened.pop(other, None)
        _opened_limit = max(256, 2 * len(_opened))
    _opened[key] = weakref.ref(buffer)


def check_integers(*values: Any) -> None:
    """TypeError: a part of a geometry is no number, nor a tuple of numbers."""
    for value in values:
        for part in value if isinstance(value, tuple) else (value,):
            if not isinstance(part, int):
                raise TypeError("this is no pickle of memclient's")
