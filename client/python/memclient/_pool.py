# SPDX-License-Identifier: Apache-2.0
"""Pools: blocks of one size in a few large buffers, which the processes of an engine share and hand to each other."""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _memclient
from ._buffers import Buffer, Pages, Placement, dlpack, memory_options, name_options
from ._rights import READ, SHARE, WRITE
from ._tokens import Token
from .errors import Exists, NotFound

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from ._ndarray import Array

__all__ = ["Block", "Pool", "PoolStatus"]

_KEEP_GIVEN = 1

# those that are open, by the name or token that pickles have of them
_open: weakref.WeakValueDictionary[str | bytes, Pool] = weakref.WeakValueDictionary()
# those that were opened for a pickle, and that nobody else keeps
_attached: dict[str | bytes, Pool] = {}


class PoolStatus(NamedTuple):
    """What there is of a pool now, as far as this process has its slabs.

    member   this process, as Pool.member
    bytes    of the slabs
    blocks   in them; of these:
    owned    by a member, or by a dead one that nobody has noticed yet
    given    given away, and not taken yet
    mine     of those owned: by this process
    members  processes that have the pool open, dead ones included that nobody has noticed yet
    readers  those that memclient_heap_invite(3) has let in
    """

    member: int
    slabs: int
    bytes: int
    blocks: int
    free: int
    owned: int
    given: int
    mine: int
    members: int
    readers: int


class Block(_memclient.Block):
    """A block of a Pool, which this process has.

    It has the buffer protocol, as a Buffer does: `memoryview(block)`, `numpy.frombuffer(block)`. `close`, the end of a
    `with` block and the end of the object free it. When the process ends, however it ends, the block is free again.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> Block:
        if self.closed:
            raise ValueError("the block is closed, or was given away")
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<memclient.Block at {self.address:#x}{' closed' if self.closed else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Block cannot be pickled: give() it, and send those bytes; or send an array of it")

    def __dlpack__(self, stream: Any = None) -> Any:
        """Its bytes, for from_dlpack() of NumPy, PyTorch and others."""
        return dlpack(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The processor's memory."""
        return 1, 0

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self)

    def give(self, member: int | None = None) -> bytes:
        """Gives the block away. Returns 16 bytes, by which another process takes it: Pool.take(). Makes no call.

        member  Pool.member of the process that may take it; by default any that has the pool

        Until somebody takes it, this process can take it back. If this process ends before, the block is free, unless
        the pool was made with keep_given=True.

        BufferError: a view of its memory exists. Stale: that member has ended. NoRight: it is another process's, as in
        a child of fork(). ValueError: it is closed.
        """
        given: bytes = self._give(0 if member is None else member, False)
        return given


class Pool(_memclient.Heap):
    """Blocks of one size in a few large buffers, the slabs, which several processes share.

        pool = memclient.Pool("engine/kv", 2 << 20)     # in every process: makes it, or attaches to what is there
        array = pool.empty((32, 128), "f4")             # in a block of its own
        queue.put(array)                                # of multiprocessing: who gets it has the block from now on

    name        under which others find it, and which keeps it until destroy(), whoever dies. Without one it lives as
                long as somebody has it open, and others get it by share(), or as an argument of their Process
    block_size  bytes of a block, rounded up to a multiple of 64. If the pool is there it may be left out, and else must
                be the same
    version     of what the program has in the blocks. It is a part of the name, so that programs of another version do
                not meet: version 2 of "engine/kv" is bound as "engine/kv/v2"
    slab_size   bytes of a slab, about; by default 32 MiB, or eight blocks if these are more
    slabs       how many there may be, up to 1024, which is also the default
    keep_given  True: what a process has given away when it dies stays for whom it is, or for whoever takes it
    pool, node, pages, placement, weights, part_size  where the slabs' memory comes from, as of memclient.alloc()
    group, group_rights, other_rights  who else may open it by its name, as of Buffer.bind(); the rights are "rw"

    A slab is mapped once by each process. Allocating, giving, taking and freeing a block makes no call of the broker,
    and goes on while there is none. A block has one owner. When a process ends, however it ends, its blocks are free
    again, as soon as another one finds no free block, opens the pool, or calls sweep().

    Arrays. `empty`, `zeros` and `array` make each in a block of its own, which is free when the last view of it has
    gone. Pickling one, or a slice of one, gives its block to whoever loads the pickle: once, since a block has one
    owner. The sender must be done with it then: its arrays still show the memory, which others will write to. A sender
    that learns that a pickle was lost, as with its receiver, has array.block.take_back(). A process that loads such a
    pickle and has not opened the pool attaches to it, until it ends.

    The processes of a pool trust each other: each may write to all of it.

    Errors are those of memclient.alloc(), and: LimitReached: 1022 processes have it open. NotFound: there is none of
    that name and version, and no block_size. NotSupported: it was made by another version of memclient. ValueError: its
    blocks have another size.
    """

    __slots__ = ("__weakref__", "_blocks", "_key")

    _blocks: weakref.WeakValueDictionary[int, Block]
    _key: str | bytes | None

    def __new__(
        cls,
        name: str | None = None,
        block_size: int | None = None,
        *,
        version: int = 1,
        slab_size: int = 0,
        slabs: int = 0,
        keep_given: bool = False,
        pool: str | None = None,
        node: int | Iterable[int] | None = None,
        pages: Pages | str | int | None = None,
        placement: Placement | str | None = None,
        weights: Sequence[int] | None = None,
        part_size: int = 0,
        group: int | None = None,
        group_rights: int | str | None = None,
        other_rights: int | str | None = None,
    ) -> Pool:
        options: dict[str, Any] = {
            "slab_size": slab_size,
            "slabs_max": slabs,
            "flags": _KEEP_GIVEN if keep_given else 0,
        }
        memory, nodes, many = memory_options(pool, node, pages, placement, weights, part_size)
        names = name_options(True, group, group_rights, other_rights)
        if block_size is not None and operator.index(block_size) <= 0:
            raise ValueError(f"a block has 1 byte or more, not {block_size}")
        if name is None:
            if block_size is None:
                raise TypeError("a new pool needs a block_size")
            return _register(_memclient.create_heap(cls, block_size, memory, None, nodes, many, options), None)
        bound = _bound_name(name, version)
        while True:
            try:
                return _check_size(_register(_memclient.open_heap_name(cls, bound), bound), block_size)
            except NotFound:
                if block_size is None:
                    raise
            try:
                options["name"] = bound
                return _register(_memclient.create_heap(cls, block_size, memory, names, nodes, many, options), bound)
            except Exists:
                # another process was as quick
                continue

    @classmethod
    def open(cls, token: bytes) -> Pool:
        """Attaches to the pool of a token that share() has made in another process.

        Errors are those of memclient.open(). TokenError: what the token opens is no pool.
        """
        return _register(_memclient.open_heap_token(cls, token), bytes(token))

    def __enter__(self) -> Pool:
        if self.closed:
            raise ValueError("the pool is closed")
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = f" {self._key!r}" if isinstance(self._key, str) else ""
        return f"<memclient.Pool{name} block_size={self.block_size}{' closed' if self.closed else ''}>"

    def __reduce__(self) -> Any:
        if self._key is None:
            self._key = bytes(self.share())
            _open[self._key] = self
        return attach, (self._key,)

    def share(
        self,
        *,
        uid: int | None = None,
        gid: int | None = None,
        pid: int | None = None,
        uses: int | None = None,
        expires: float | None = None,
    ) -> Token:
        """Makes a token by which another process attaches: Pool.open(). The arguments are those of Buffer.share()."""
        from ._buffers import share_options

        options = share_options(0, uid, gid, pid, uses, expires, False)
        return Token(self._share(options), READ | WRITE | SHARE)

    def alloc(self) -> Block:
        """A block. Its contents are those of its last owner.

        PoolFull: all blocks are taken, and there are `slabs` of them, or there is no memory for another one.
        """
        return self._add(self._alloc(Block))

    def take(self, reference: bytes) -> Block:
        """Takes a block that was given away: with the 16 bytes of Block.give().

        Stale: it was taken already, or freed with its giver. NoRight: it is for another process. ValueError: these are
        no such bytes.
        """
        return self._add(self._take(Block, reference))

    def _add(self, block: Block) -> Block:
        # one block begins in each range of so many bytes
        self._blocks[block.address // self.block_size] = block
        return block

    def _find(self, address: int) -> Block | None:
        """The block whose memory is there, if it was one of this process."""
        for number in (address // self.block_size, address // self.block_size - 1):
            block = self._blocks.get(number)
            if block is not None and block.address <= address < block.address + self.block_size:
                return block
        return None

    def empty(self, shape: int | Sequence[int], dtype: DTypeLike = float, order: str = "C") -> Array:
        """A new array in a block of its own, which is as the block's last owner has left it. See memclient.empty().

        ValueError: it is larger than a block. Other errors are those of alloc().
        """
        return self._lay(shape, dtype, order, False)

    def zeros(self, shape: int | Sequence[int], dtype: DTypeLike = float, order: str = "C") -> Array:
        """The same, of zeros."""
        return self._lay(shape, dtype, order, True)

    def _lay(self, shape: int | Sequence[int], dtype: DTypeLike, order: str, clear: bool) -> Array:
        from ._arrays import check_geometry
        from ._ndarray import lay

        numbers, plain = check_geometry(shape, dtype, order)
        size = math.prod(numbers) * plain.itemsize
        if size > self.block_size:
            raise ValueError(f"an array of {size} bytes does not fit a block of {self.block_size}")
        block = self.alloc()
        if clear:
            lay(block, (size,), check_geometry((), "u1", "C")[1])[:] = 0
        return lay(block, numbers, plain, order=order)

    def array(self, source: ArrayLike, dtype: DTypeLike = None) -> Array:
        """A new array in a block of its own, with a copy of `source`. See memclient.array()."""
        from ._arrays import copy_into

        return copy_into(source, dtype, self.empty)

    def status(self) -> PoolStatus:
        """Counts what there is. It looks at each block."""
        row = self._query()
        return PoolStatus(
            member=row["member"],
            slabs=row["slabs"],
            bytes=row["bytes"],
            blocks=row["blocks"],
            free=row["blocks_free"],
            owned=row["blocks_owned"],
            given=row["blocks_given"],
            mine=row["blocks_mine"],
            members=row["members"],
            readers=row["readers"],
        )

    def sweep(self, *, trim: bool = False) -> None:
        """Frees the blocks of dead processes, and gives slabs back of which every block is free, but one.

        trim  True: gives that one back, too
        """
        self._sweep(trim)

    def destroy(self) -> None:
        """Unbinds the pool's name, and leaves it: its memory is freed when the last process has left.

        BufferError: a view of a block exists here. NoRight: the name is another user's.
        """
        self._destroy()
        if self._key is not None:
            _attached.pop(self._key, None)


def _bound_name(name: str, version: int) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    if operator.index(version) < 0:
        raise ValueError(f"a version is 0 or more, not {version}")
    return f"{name}/v{operator.index(version)}"


def _register(pool: Pool, key: str | bytes | None) -> Pool:
    pool._blocks = weakref.WeakValueDictionary()
    pool._key = key
    if key is not None:
        _open[key] = pool
    number = id(pool)
    _pools[number] = weakref.ref(pool, lambda _: _pools.pop(number, None))
    return pool


# walking through these costs each pickle less than through a WeakSet
_pools: dict[int, weakref.ref[Pool]] = {}


def _check_size(pool: Pool, block_size: int | None) -> Pool:
    found = pool.block_size
    if block_size is not None and found != -(-operator.index(block_size) // 64) * 64:
        pool.close()
        raise ValueError(f"{pool!r} is there, with blocks of {found} bytes, not {block_size}: use another version")
    return pool


def attach(key: str | bytes) -> Pool:
    """The pool of a pickle."""
    pool = _open.get(key)
    if pool is None or pool.closed:
        if isinstance(key, str):
            pool = _register(_memclient.open_heap_name(Pool, key), key)
        elif isinstance(key, bytes):
            pool = Pool.open(key)
        else:
            raise TypeError("this is no pickle of memclient's")
        _attached[key] = pool
    return pool


def has_pools() -> bool:
    """Could a block be anywhere?"""
    return bool(_pools)


def block_at(address: int) -> Block | None:
    """The block of this process, or one that was, whose memory is at an address."""
    for reference in list(_pools.values()):
        pool = reference()
        block = pool._find(address) if pool is not None else None
        if block is not None:
            return block
    return None


def memory_at(address: int) -> tuple[Buffer | Block, int, int] | None:
    """What is mapped at an address: the block or buffer, how far the address is within it, and its size."""
    if _pools:
        block = block_at(address)
        if block is not None:
            return block, address - block.address, block.pool.block_size
    found = _memclient.at(Buffer, address)
    return (*found, found[0].size) if found else None


def take_block(pool: Any, reference: Any) -> Block:
    """The block of a pickle."""
    if not isinstance(pool, Pool) or not isinstance(reference, bytes):
        raise TypeError("this is no pickle of memclient's")
    return pool.take(reference)
