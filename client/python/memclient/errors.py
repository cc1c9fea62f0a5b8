# SPDX-License-Identifier: Apache-2.0
"""What calls of memclient raise.

All are subclasses of `Error`, which is an OSError: `errno` and `strerror` are the kernel's number and a sentence that
says what is wrong and what to do. Where Python has an exception for the same thing, they are subclasses of that, too,
so programs that know nothing of memclient handle them.
"""

from __future__ import annotations

import errno

from . import _memclient

__all__ = [
    "Busy",
    "Error",
    "Exists",
    "Interrupted",
    "Invalid",
    "LimitReached",
    "NoBroker",
    "NoRight",
    "NotFound",
    "NotSupported",
    "PoolFull",
    "Published",
    "Stale",
    "TimedOut",
    "TokenError",
]


class Error(OSError):
    """A call of the broker, or of the library, was refused.

    `status` is the broker's word for it, like "POOL_FULL"; None if not the broker but the library or the kernel
    refused.
    """

    status: str | None = None


class PoolFull(Error, MemoryError):
    """There is no memory: the pool, its nodes or the machine have no room for it, or the pool could never hold it."""


class NoRight(Error, PermissionError):
    """The caller does not have the right that this needs, or is not whom a token or a name is for."""


class NotFound(Error, FileNotFoundError):
    """There is no such name, or no such id was ever given out."""


class Exists(Error, FileExistsError):
    """The name is bound already."""


class Stale(Error):
    """What it refers to has ended: the buffer, or the session that held it."""


class TokenError(Error):
    """No token, one of another broker, used up, expired or revoked."""


class TimedOut(Error, TimeoutError):
    """There was no room, or no answer, within the time that was given."""


class LimitReached(Error):
    """A limit of this user or session is reached, or the user's share of what all have."""


class Busy(Error):
    """Somebody else uses it in a way that forbids this."""


class Published(Error):
    """The buffer is published: nobody may write to it any more."""


class NotSupported(Error):
    """This kind of buffer, this pool or this system cannot do that."""


class NoBroker(Error, ConnectionError):
    """There is no broker, it cannot be spoken to, or it has ended and the session with it."""


class Invalid(Error, ValueError):
    """An argument is malformed, or out of its range."""


class Interrupted(Error, InterruptedError):
    """The handler of a signal has ended the wait."""


_BY_STATUS: dict[str, type[Error]] = {
    "TOO_BIG": PoolFull,
    "POOL_FULL": PoolFull,
    "NO_MEMORY": PoolFull,
    "MISPLACED": PoolFull,
    "TOKEN_STALE": Stale,
    "NO_SUCH_POOL": NotFound,
    "NO_SUCH_NODE": NotFound,
}

_BY_ERRNO: dict[int, type[Error]] = {
    errno.ENOMEM: PoolFull,
    errno.EFBIG: PoolFull,
    errno.EACCES: NoRight,
    errno.EPERM: NoRight,
    errno.ENOENT: NotFound,
    errno.EEXIST: Exists,
    errno.ESTALE: Stale,
    errno.ESRCH: Stale,
    errno.EALREADY: Stale,
    errno.EBADMSG: TokenError,
    errno.EREMOTE: TokenError,
    errno.EKEYEXPIRED: TokenError,
    errno.EKEYREVOKED: TokenError,
    errno.EKEYREJECTED: TokenError,
    errno.ETIMEDOUT: TimedOut,
    errno.EDQUOT: LimitReached,
    errno.EUSERS: LimitReached,
    errno.EBUSY: Busy,
    errno.EROFS: Published,
    errno.EOPNOTSUPP: NotSupported,
    errno.ENOSYS: NotSupported,
    errno.ECONNREFUSED: NoBroker,
    errno.ECONNRESET: NoBroker,
    errno.ENOTCONN: NoBroker,
    errno.ESHUTDOWN: NoBroker,
    errno.EPROTO: NoBroker,
    errno.EPROTONOSUPPORT: NoBroker,
    errno.EINVAL: Invalid,
    errno.EMSGSIZE: Invalid,
    errno.EOVERFLOW: Invalid,
    errno.ENAMETOOLONG: Invalid,
    errno.EINTR: Interrupted,
}


def _make(number: int, sentence: str, status: str | None) -> Error:
    kind: type[Error] = _BY_STATUS.get(status or "", _BY_ERRNO.get(number, Error))
    error = kind(number, sentence)
    error.status = status
    return error


_memclient.set_error(_make)
