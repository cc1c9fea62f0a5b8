# SPDX-License-Identifier: Apache-2.0
"""Buffers: memory that the broker owns, and that processes share."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import _memclient
from ._pickling import forget_tokens
from ._rights import Right, parse
from ._times import FOREVER, milliseconds
from ._tokens import Token

__all__ = ["Buffer", "BufferInfo", "Holder", "Pages", "Placement", "State", "alloc", "open", "unbind"]


class Pages(enum.IntEnum):
    """Which pages a buffer consists of.

    ANY      the pool's; without a pool, by the size
    BASE     the system's base page
    THP      base pages that the kernel backs with transparent huge pages where it can
    HUGETLB  huge pages that the system has reserved
    """

    ANY = 0
    BASE = 1
    THP = 2
    HUGETLB = 3


class Placement(enum.IntEnum):
    """Where pages go when there are several NUMA nodes, and how strictly.

    POOL        as the pool says; without a pool BIND if a single node is named, else LOCAL
    BIND        on these nodes or not at all
    PREFERRED   on these nodes where they have room, else on another
    INTERLEAVE  parts round the nodes in the order named
    SPLIT       one contiguous part for each node, sized by the weights
    LOCAL       preferred on the calling thread's node
    """

    POOL = 0
    BIND = 1
    PREFERRED = 2
    INTERLEAVE = 3
    SPLIT = 4
    LOCAL = 5


class State(enum.IntEnum):
    """What a buffer is at the broker.

    COMMITTING  its pages are being allocated
    LIVE        a session, a name or a keeping token keeps it
    DETACHED    none does, but some process still has it open or mapped
    ENDING      its pages are being freed, or, if `detached` is set, will be when no process has them any more
    """

    COMMITTING = 0
    LIVE = 1
    DETACHED = 2
    ENDING = 3


class Holder(NamedTuple):
    """A session that holds a buffer.

    claim   0 none, 1 shared, 2 exclusive
    cached  it keeps the memory only for the next time
    since   seconds since 1970; None: longer than this broker, which took over from another, or it is older than 1.4
    """

    session: int
    rights: Right
    claim: int
    cached: bool
    since: float | None


class BufferInfo(NamedTuple):
    """What the broker knows about a buffer.

    size         bytes, as asked for
    bytes        committed and charged
    page_size    bytes
    huge_bytes   of Pages.THP: what huge pages backed at first
    uid          of the process that allocated it
    charged_uid  the user whose limits it counts against
    pid          of the process that allocated it
    holds        how many sessions hold it
    home         its address, 0 = none
    created      seconds since 1970
    detached     likewise: since when only others may have it, else 0
    name         one of its names, or ""
    nodes        NUMA node: bytes on it
    holders      the first of them
    seals        F_SEAL_* of fcntl(2)
    """

    id: int
    state: State
    flags: int
    size: int
    bytes: int
    pool: str
    pages: Pages
    placement: Placement
    page_size: int
    huge_bytes: int
    uid: int
    charged_uid: int
    pid: int
    holds: int
    names: int
    tokens: int
    inode: int
    home: int
    created: float
    detached: float
    name: str
    nodes: dict[int, int]
    holders: tuple[Holder, ...]
    seals: int


def _info(row: dict[str, Any]) -> BufferInfo:
    """A row of the library's, with Python's types."""
    holders = zip(
        row["holders"], row["holder_rights"], row["holder_claims"], row["holder_cached"], row["holder_since_ms"]
    )
    return BufferInfo(
        id=row["id"],
        state=State(row["state"]),
        flags=row["flags"],
        size=row["length"],
        bytes=row["bytes"],
        pool=row["pool"],
        pages=Pages(row["pages"]),
        placement=Placement(row["placement"]),
        page_size=row["page_size"],
        huge_bytes=row["huge_bytes"],
        uid=row["uid"],
        charged_uid=row["charged_uid"],
        pid=row["pid"],
        holds=row["holds"],
        names=row["names"],
        tokens=row["tokens"],
        inode=row["inode"],
        home=row["address"],
        created=row["created_ms"] / 1000,
        detached=row["detached_ms"] / 1000,
        name=row["name"],
        nodes=dict(zip(row["nodes"], row["node_bytes"])),
        holders=tuple(Holder(s, Right(r), c, bool(k), t / 1000 if t else None) for s, r, c, k, t in holders),
        seals=row["seals"],
    )


def name_options(
    keep: bool | float, group: int | None, group_rights: int | str | None, other_rights: int | str | None
) -> dict[str, Any]:
    """How long a name lasts, and for whom it is."""
    options: dict[str, Any] = {}
    if keep is False:
        options["policy"] = 1
    elif keep is not True:
        options["policy"] = 2
        options["keep_ms"] = milliseconds(keep, "keep")
    if (group is None) != (group_rights is None):
        raise ValueError("group and group_rights come together")
    if group is not None:
        options["gid"] = group
        options["group_rights"] = parse(group_rights)
    if other_rights is not None:
        options["other_rights"] = parse(other_rights)
    return options


def share_options(
    rights: int,
    uid: int | None,
    gid: int | None,
    pid: int | None,
    uses: int | None,
    expires: float | None,
    keep: bool,
) -> dict[str, Any]:
    """What a token grants, to whom, and how long."""
    options: dict[str, Any] = {"rights": rights}
    flags = 1 if keep else 0
    for key, value, flag in (("uid", uid, 2), ("gid", gid, 4), ("pid", pid, 8)):
        if value is not None:
            options[key] = value
            flags |= flag
    options["flags"] = flags
    if uses is not None:
        if not uses:
            raise ValueError("uses is 1 or more")
        options["uses"] = uses
    if expires is not None:
        options["expiry_ms"] = milliseconds(expires, "expires")
        if not options["expiry_ms"]:
            raise ValueError("expires is more than 0 seconds")
    return options


class Buffer(_memclient.Buffer):
    """Memory that the broker owns, and that processes share.

    It is made by `alloc` or `open`, and has the buffer protocol: `memoryview(buffer)`, `numpy.frombuffer(buffer)`,
    `ctypes` and files take its memory without a copy, writable if this object has that right. It is mapped when the
    memory or its address is wanted first, at the same address in every process. All of its pages are there, so touching
    them never fails.

    `close`, the end of a `with` block and the end of the object give it back. The broker frees the memory when nobody
    has it any more: no process, no name, no keeping token.

    Any thread may use it. After fork() the child shares the memory.

    Methods raise subclasses of memclient.Error, and ValueError if the buffer is closed.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> Buffer:
        if self.closed:
            raise ValueError("the buffer is closed")
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<memclient.Buffer closed>"
        return f"<memclient.Buffer id={self.id} size={self.size}{' readonly' if self.readonly else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Buffer cannot be pickled: share() it, and send the token; or send an array of it")

    def __dlpack__(self, stream: Any = None) -> Any:
        """Its bytes, for from_dlpack() of NumPy, PyTorch and others. BufferError: it is read-only."""
        return dlpack(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The processor's memory."""
        return 1, 0

    @property
    def rights(self) -> Right:
        """What this object may do."""
        return Right(self._rights)

    @property
    def published(self) -> bool:
        """True if nobody may write to it any more, as far as this process has seen."""
        return bool(self._flags & 256)

    def share(
        self,
        *,
        rights: int | str | None = None,
        uid: int | None = None,
        gid: int | None = None,
        pid: int | None = None,
        uses: int | None = None,
        expires: float | None = None,
        keep: bool = False,
    ) -> Token:
        """Makes a token, with which its bearer opens the buffer.

        rights    a Right, or a text as "r" or "rw": what it grants; by default READ, and WRITE if this object has it
        uid, gid, pid  only this user, the members of this group, this process may use it
        uses      how often it may be opened; by default any number of times
        expires   seconds from now; by default it does not expire
        keep      True: the token keeps the buffer alive until it is used up or expires, one of which must be given

        NoRight: this object lacks SHARE, or a right that the token should grant. LimitReached: of tokens.
        """
        granted = parse(rights)
        options = share_options(granted, uid, gid, pid, uses, expires, keep)
        return Token(self._share(options), Right(granted or self._rights & 3))

    def revoke_tokens(self) -> None:
        """Revokes all tokens of the buffer, also of its pickles. NoRight: this object lacks MANAGE."""
        self._revoke_tokens()
        forget_tokens(self.id)

    def publish(self, *, future_only: bool = False) -> None:
        """Makes the buffer immutable, forever and for every process. It must have been allocated as publishable.

        future_only  True: forbids only new writable mappings; those that are there may still write

        BufferError: a writable view of its memory exists in this process. Busy: another process has it mapped for
        writing. NoRight: this object lacks MANAGE. Published: it is already. NotSupported: it is not publishable.
        """
        self._publish(1 if future_only else 0)

    def bind(
        self,
        name: str,
        *,
        keep: bool | float = True,
        group: int | None = None,
        group_rights: int | str | None = None,
        other_rights: int | str | None = None,
    ) -> None:
        """Binds a name, by which others open the buffer, and which keeps it alive.

        keep          True: until it is unbound; False: until this process ends; or for so many seconds after that
        group, group_rights  what members of this group may do
        other_rights  what everybody may do; the user's own programs have all rights

        Exists: it is bound already. NoRight: this object lacks MANAGE. LimitReached: of names.
        """
        if not isinstance(name, str):
            raise TypeError(f"a name is a str, not {type(name).__name__}")
        self._bind(name, name_options(keep, group, group_rights, other_rights))

    def unbind(self, name: str) -> None:
        """Unbinds a name, as memclient.unbind(name) does."""
        if self.closed:
            raise ValueError("the buffer is closed")
        unbind(name)

    def export_fd(self, rights: int | str | None = None) -> int:
        """A new descriptor of the memory, which the caller closes. rights: "r" or "rw"; by default what is possible."""
        return self._export_fd(parse(rights) & 3)

    def discard(self, offset: int = 0, length: int = 0) -> None:
        """Gives the pages of a range back to the system; they read as zeros afterwards, in every process.

        offset and length are in bytes, multiples of `granule`; length 0 = to the end. Needs WRITE and MANAGE.
        """
        self._discard(offset, length)

    def move(self, node: int) -> None:
        """Moves all pages to a NUMA node. Contents, mappings and addresses stay. Needs MANAGE."""
        self._move(node)

    def info(self) -> BufferInfo:
        """What the broker knows about the buffer now."""
        return _info(self._query())


def view(buffer: Buffer | _memclient.Block) -> memoryview:
    """The memory of a buffer or block. Checkers of types that are older than the protocol's class would not take it for a buffer."""
    return memoryview(buffer)  # type: ignore[arg-type]


def dlpack(memory: Buffer | _memclient.Block) -> Any:
    """Its bytes, as DLPack has them."""
    import numpy

    return numpy.frombuffer(view(memory), numpy.uint8).__dlpack__()


_PAGES = {"any": Pages.ANY, "base": Pages.BASE, "thp": Pages.THP, "huge": Pages.HUGETLB, "hugetlb": Pages.HUGETLB}
_PLACEMENTS = {placement.name.lower(): placement for placement in Placement}


def _pages(pages: Pages | str | int) -> dict[str, int]:
    """A kind of pages, by its name, or huge pages by their size in bytes."""
    if isinstance(pages, str):
        if pages not in _PAGES:
            raise ValueError(f"pages are {', '.join(_PAGES)} or a number of bytes, not {pages!r}")
        return {"pages": _PAGES[pages]}
    number = operator.index(pages)
    return {"pages": number} if number <= Pages.HUGETLB else {"pages": Pages.HUGETLB, "page_size": number}


def _placement(placement: Placement | str | int) -> int:
    if isinstance(placement, str):
        if placement not in _PLACEMENTS:
            raise ValueError(f"a placement is {', '.join(_PLACEMENTS)}, not {placement!r}")
        return _PLACEMENTS[placement]
    return operator.index(placement)


def memory_options(
    pool: str | None,
    node: int | Iterable[int] | None,
    pages: Pages | str | int | None,
    placement: Placement | str | None,
    weights: Sequence[int] | None,
    part_size: int,
) -> tuple[dict[str, Any], tuple[int, ...] | None, tuple[int, ...] | None]:
    """Where memory comes from: options, the nodes, and their weights."""
    options: dict[str, Any] = {"pool": pool, "part_size": part_size}
    if pages is not None:
        options.update(_pages(pages))
    if placement is not None:
        options["placement"] = _placement(placement)
    nodes = None if node is None else (node,) if isinstance(node, int) else tuple(node)
    return options, nodes, None if weights is None else tuple(weights)


def alloc(
    size: int,
    *,
    name: str | None = None,
    pool: str | None = None,
    node: int | Iterable[int] | None = None,
    pages: Pages | str | int | None = None,
    timeout: float | None = 0,
    publishable: bool = False,
    placement: Placement | str | None = None,
    weights: Sequence[int] | None = None,
    part_size: int = 0,
    alignment: int = 0,
    address: int = 0,
    keep: bool | float = True,
    group: int | None = None,
    group_rights: int | str | None = None,
    other_rights: int | str | None = None,
) -> Buffer:
    """Allocates a buffer of `size` bytes, zeroed, with all of its pages, and all rights.

    name         bound to it at once, so that others can open it by that; keep, group, group_rights and other_rights are
                 those of Buffer.bind()
    pool         the name of the broker's pool that it comes from; by default one is chosen
    node         a NUMA node, or several
    pages        "base", "thp", "huge", or the size of huge pages in bytes
    timeout      seconds to wait for room if the pool is full; None = forever. Memory that is being freed is waited for
                 in any case
    publishable  True: publish() is allowed
    placement    how several nodes are used: a Placement or its name; weights and part_size (bytes) belong to it
    alignment    of its address in bytes, a power of two
    address      at which it is to be in every process; 0 = any

    PoolFull: there is no room. TimedOut: there was none in time. LimitReached: a limit of this user. Exists: the name is
    bound already. NotFound: no such pool or node. NoBroker: no broker can be reached. ValueError: size 0, or an option
    out of range.
    """
    size = operator.index(size)
    if size <= 0:
        raise ValueError(f"a buffer has 1 byte or more, not {size}")
    options, nodes, many = memory_options(pool, node, pages, placement, weights, part_size)
    options.update(
        {
            "name": name,
            "wait_ms": FOREVER if timeout is None else milliseconds(timeout, "timeout"),
            "flags": 1 if publishable else 0,
            "alignment": alignment,
            "address": address,
        }
    )
    names = name_options(keep, group, group_rights, other_rights)
    return _memclient.alloc(Buffer, size, options, names, nodes, many)


_CLAIMS = {None: 0, "shared": 1, "exclusive": 2}


def open(  # pylint: disable=redefined-builtin
    what: bytes | str | int,
    *,
    rights: int | str | None = None,
    claim: str | None = None,
    foreign: bool = False,
) -> Buffer:
    """Opens a buffer of another process, or of this one.

    what     a token (a Token or its 32 bytes), a name (a str), or a descriptor (an int) as fileno() says it, which stays
             the caller's
    rights   a Right, or a text as "r" or "rw": what is wanted; by default all that is granted
    claim    "shared" or "exclusive": keeps out other processes' claims of that name while the buffer is open
    foreign  True: of a token or name, also memory that the broker did not allocate, which may shrink; of a descriptor,
             makes a buffer of a memfd or dma-buf that is not the broker's

    NotFound: the name is not bound. TokenError: no token, or one that is used up, expired or revoked. Stale: its buffer
    has ended. NoRight: it is for another user, or does not grant these rights. Busy: the claim of another process.
    """
    wanted = parse(rights)
    if claim not in _CLAIMS:
        raise ValueError(f'a claim is "shared" or "exclusive", not {claim!r}')
    if isinstance(what, str):
        return _memclient.open_name(Buffer, what, wanted | (256 if foreign else 0), _CLAIMS[claim])
    if claim is not None:
        raise ValueError("only names can be claimed")
    if isinstance(what, int) and not isinstance(what, bool):
        if not -(2**31) <= what < 2**31:
            raise ValueError(f"no descriptor: {what}")
        return _memclient.open_fd(Buffer, what, wanted, foreign)
    if isinstance(what, Token) and not wanted:
        # this process may hold the buffer with more rights
        wanted = int(what.rights or 0)
    return _memclient.open_token(Buffer, what, wanted | (256 if foreign else 0))


def unbind(name: str) -> None:
    """Unbinds a name of this user's. What it has kept alive is freed, unless others have it.

    NotFound: it is not bound.
    """
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    _memclient.unbind_name(name)
