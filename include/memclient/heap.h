/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps: blocks of memory that processes hand to each other, without a call to the broker.
 *
 *     struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
 *     options.block_sizes = (const uint64_t[]){65536};
 *     options.n_block_sizes = 1;
 *     if (memclient_heap_create(NULL, &options, &heap) < 0 || memclient_heap_share(heap, NULL, &token) < 0)
 *         errx(1, "%s", memclient_error());
 *     // send the token to another process, which calls memclient_heap_open_token(NULL, &token, &heap)
 *     memclient_heap_alloc(heap, 65536, &p);
 *     // fill it
 *     memclient_block_give(heap, p, 0, &block);
 *     // send the block's 16 bytes; there:
 *     memclient_block_take(heap, &block, &p);
 *     // read it
 *     memclient_heap_free(heap, p);
 *
 * A heap takes *slabs*, which are large buffers, from a pool of the broker, and cuts them into *blocks* of one size
 * each. A *member* is a process that has the heap open. A slab is mapped once by each member; allocating, giving,
 * taking and freeing a block then are a few instructions each. A block has one owner, which alone may free it or give
 * it away, and a generation: 16 bytes name a block that was given away, and whoever comes too late with them is told.
 *
 * Death. When a member ends, however it ends, the blocks that it had are free again, as soon as another one opens the
 * heap, finds no free block, or calls memclient_heap_sweep(). What it had given away and nobody has taken yet is free
 * as well, or stays for whom it is: MEMCLIENT_HEAP_KEEP_GIVEN. What was given to a reader is that reader's from then
 * on, whether it has heard of it or not, and whatever the flag: it is free when the reader frees it, leaves, or dies.
 * That a member is dead, the kernel says, by a lock that it had; no time is involved, and one that is stopped loses
 * nothing. What was given to a member that died before it took it is free, too. The heap goes on while no broker does;
 * only new slabs, and members that open it, wait for the next one.
 *
 * Trust. The members of a heap trust each other: any of them can spoil the contents and the books of all. But nothing
 * that one of them writes makes another one crash, loop, or touch memory outside of the heap, and the broker never
 * looks at it. (A member can also punch pages out. They read as zeros then; reserved huge pages raise SIGBUS if the
 * kernel has none left.) Whom one does not trust to write becomes a *reader*: memclient_heap_invite().
 *
 * Threads. Any thread may call any function at any time, with the same heap. A block is the member's, not a thread's,
 * so one may free what another has allocated. Only memclient_heap_close() and memclient_heap_destroy() come last: when
 * all other calls with the heap have returned, and nobody uses its memory any more. A process that opens a heap twice
 * is two members. A heap is closed before its context. Nothing here is async-signal-safe.
 *
 * fork(). A child is another member: it becomes one when it first allocates, takes, shares, invites, sweeps or trims,
 * and has none of the blocks that its parent has, though it sees them: freeing or giving them is -EPERM. A reader's
 * child has no part in the heap, and can only close it.
 *
 * Errors are as of <memclient/memclient.h>. In addition, those calls may return in a child
 *     -EUSERS      the heap has as many members as it may have, 1022
 *     -ESTALE      its parent is a reader: the child asks for an invitation of its own
 */
#ifndef MEMCLIENT_HEAP_H
#define MEMCLIENT_HEAP_H

#include <memclient/memclient.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A heap, as this process has it open. */
struct memclient_heap;

/* A block that was given away: which one of which heap, and its generation. For members that have its slab. Opaque:
 * programs copy and send the bytes. */
struct memclient_block {
    uint64_t position;
    uint64_t generation;
};

/* The same for readers, too: with the token by which they read the slab. */
struct memclient_block_token {
    struct memclient_token slab;
    struct memclient_block block;
};

enum memclient_heap_flag {
    /* What a member had given away when it died stays for whom it is. What was given to nobody in particular then stays
     * until somebody takes it. A heap for which that must hold without exception has a name. */
    MEMCLIENT_HEAP_KEEP_GIVEN = 1
};

struct memclient_heap_options {
    size_t size;
    const uint64_t *block_sizes; /* each is rounded up to a multiple of 64 */
    size_t n_block_sizes;        /* 1 to 8 */
    /* Bytes of blocks in a slab, about. A slab has nine bytes more for each block and 72 besides, and takes whole
     * pages, which may be huge. 0 = what takes 32 MiB with all that, or eight blocks if these are more. */
    uint64_t slab_size;
    size_t slabs_max; /* at a time, of all block sizes together: 1 to 1024; 0 = 1024 */
    unsigned flags;   /* enum memclient_heap_flag */
    /* Where the slabs' memory comes from: pool, nodes, pages, page_size, placement, part_size and weights; nothing else
     * is allowed here. The broker looks at it when a slab is added, so memclient_heap_alloc() may say that there is no
     * such pool or node. NULL = as for memclient_alloc(). */
    const struct memclient_alloc_options *memory;
    const char *name; /* under which others open it, and which keeps it; NULL = none */
    /* Who may open it by name: groups and others have READ and WRITE, with or without SHARE, or nothing. Its policy is
     * MEMCLIENT_NAME_KEEP. NULL = only programs of this user. */
    const struct memclient_name_options *name_options;
};
#define MEMCLIENT_HEAP_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_heap_options)

/*
 * Makes a heap, and is its first member. Slabs are made when they are needed. The slabs of a heap without a name live
 * as long as somebody has them open, and who has taken a block has. So only what nobody has taken yet can end with the
 * member that has given it away: if that one made the slab, and nobody else has had a block of it. The slabs of a heap
 * with a name NAME have the names NAME/0, NAME/1 and so on, and stay until memclient_heap_destroy(), whoever dies.
 *     -EINVAL       a block size is 0 or too large, or there are none or too many, or an option is not allowed
 *     -EEXIST       the name is bound already
 *     -ENAMETOOLONG the name leaves no room for those of the slabs
 * and those of memclient_alloc().
 */
MEMCLIENT_API int memclient_heap_create(struct memclient_context *ctx, const struct memclient_heap_options *options,
                                        struct memclient_heap **heap);

/*
 * Opens a heap: with a token of memclient_heap_share(), as a member, or of memclient_heap_invite(), as a reader.
 * Members that have died are swept.
 *     -EBADMSG         what the token opens is no heap
 *     -EPROTONOSUPPORT the heap is of another version of this library
 *     -EUSERS          it has as many members as it may have, 1022
 *     -EACCES          the token does not grant READ and WRITE
 *     -EBUSY           another reader has come by the invitation
 *     -ESTALE          the heap has ended; or the invitation, with who had made it
 * and those of memclient_open_token().
 */
MEMCLIENT_API int memclient_heap_open_token(struct memclient_context *ctx, const struct memclient_token *token,
                                            struct memclient_heap **heap);

/* The same by name, as a member, with the errors of memclient_open_name(). -EACCES: the name does not grant WRITE. */
MEMCLIENT_API int memclient_heap_open_name(struct memclient_context *ctx, const char *name,
                                           struct memclient_heap **heap);

/*
 * Leaves the heap: what is left to this member is freed as if it had died, and all slabs are unmapped, so nothing may
 * use their memory any more. Other threads must be done with it. NULL is ignored.
 */
MEMCLIENT_API void memclient_heap_close(struct memclient_heap *heap);

/*
 * The same, and unbinds the names of the slabs and every name that the heap has: it lives until the last member has
 * left. If it fails, the heap is still open; if a death interrupts it, the heap can be opened by the name that it still
 * has and destroyed again.
 *     -EPERM      a reader cannot destroy a heap
 *     -EACCES     the heap has another user's name. If that was bound to it later, this user's names are gone all the
 *                 same
 */
MEMCLIENT_API int memclient_heap_destroy(struct memclient_heap *heap);

/*
 * Makes a token by which another process becomes a member, who may write everything. The rights of `options` are 0 or
 * all that a member needs (-EINVAL): READ, WRITE and SHARE.
 *     -EPERM      a reader cannot share a heap
 *     -EACCES     this member has come by a name that does not grant SHARE
 */
MEMCLIENT_API int memclient_heap_share(struct memclient_heap *heap, const struct memclient_share_options *options,
                                       struct memclient_token *token);

/*
 * Makes a token by which one other process becomes a *reader*, and tells its number for memclient_block_share(). A
 * reader opens the slabs of what it is given to read only, as the kernel enforces. It may take and free blocks, but not
 * allocate or give. What it frees goes into a queue of its own, from which the next member takes it that finds no free
 * block, or sweeps. An invitation that was not used yet ends with who has made it.
 *     -EPERM      a reader cannot invite others
 *     -EUSERS     the heap has as many members and readers as it may have, 1022
 * and those of memclient_alloc() and memclient_share().
 */
MEMCLIENT_API int memclient_heap_invite(struct memclient_heap *heap, struct memclient_token *token, uint64_t *member);

/* Who this member is, for memclient_block_give(). No other one of the heap ever has its number. 0 in a child that has
 * made no call yet. */
MEMCLIENT_API uint64_t memclient_heap_member(const struct memclient_heap *heap);

/*
 * Allocates a block of the smallest size that is `bytes` or more. Its contents are those of its last owner. Its address
 * is a multiple of each power of two up to 2 MiB of which its size is one, at home. Makes no call, unless no block is
 * free.
 *     -EMSGSIZE   the heap has no blocks that large
 *     -ENOMEM     all blocks are taken, and no slab can be added; or what memclient_alloc() says of a new slab
 *     -EACCES     all blocks are taken, and the heap has another user's name: that user's members add slabs
 *     -EEXIST     all blocks are taken, and a new slab's name, NAME/0 or so, is that of another buffer
 *     -EPERM      a reader cannot allocate
 */
MEMCLIENT_API int memclient_heap_alloc(struct memclient_heap *heap, uint64_t bytes, void **address);

/*
 * The same, at a multiple of `alignment`, a power of two up to 2 MiB: a block of the smallest size that is `bytes` or
 * more and a multiple of it.
 *     -EINVAL        the alignment is no power of two, or larger
 *     -EMSGSIZE      the heap has no such size
 *     -EADDRNOTAVAIL the block's slab is mapped elsewhere than at home, and not so that it is aligned
 * and those of memclient_heap_alloc().
 */
MEMCLIENT_API int memclient_heap_alloc_aligned(struct memclient_heap *heap, uint64_t bytes, uint64_t alignment,
                                               void **address);

/*
 * Frees a block that this member owns, whoever allocated it. NULL is ignored. Makes no call.
 *     -EFAULT     the address is in no slab of this heap
 *     -EINVAL     no block begins there
 *     -EALREADY   it is free already
 *     -EBUSY      it was given away: take it back first. Or another thread is just freeing or giving it
 *     -EPERM      another member owns it, as a child's parent does
 *     -EAGAIN     a reader's queue is full: no member has looked into it for 8000 blocks
 */
MEMCLIENT_API int memclient_heap_free(struct memclient_heap *heap, void *address);

/*
 * How many bytes the block has that begins at an address, whoever owns it: one of the sizes of the heap, as they were
 * rounded up. For who has taken it, and was told no length. Makes no call.
 *     -EFAULT     the address is in no slab of this heap
 *     -EINVAL     no block begins there
 */
MEMCLIENT_API int memclient_block_bytes(struct memclient_heap *heap, const void *address, uint64_t *bytes);

/*
 * Gives a block to the member `to`, or 0 = to any. From now on it may not be used here. Until it is taken, this member
 * may take it back, unless it was given to a reader. Makes no call. Errors as of memclient_heap_free(), and
 *     -EPERM      also: a reader cannot give blocks
 *     -ESRCH      `to` is no member any more, and the block is still this one's. A member that has died is one until it
 *                 is swept, and what it is given then is free again with the rest
 */
MEMCLIENT_API int memclient_block_give(struct memclient_heap *heap, void *address, uint64_t to,
                                       struct memclient_block *block);

/*
 * Tells what memclient_block_give() of this block will return, whomever it is given to: for who writes that down first.
 * One that dies in between has had the block, so it is free, and what was written leads to ESTALE; one that dies after
 * it has left no block that nobody knows of. (One that is given to a reader who never hears of it is the reader's until
 * that ends.) Makes no call. Errors as of memclient_block_give(), but not -ESRCH.
 */
MEMCLIENT_API int memclient_block_prepare(struct memclient_heap *heap, void *address, struct memclient_block *block);

/* Gives a block, as memclient_block_give(), to a member or reader that may not have the slab yet. Makes no call. Errors
 * as of memclient_block_give(). */
MEMCLIENT_API int memclient_block_share(struct memclient_heap *heap, void *address, uint64_t to,
                                        struct memclient_block_token *token);

/*
 * Takes a block that was given, so that it is owned here. Its address is the giver's, so that pointers into it hold,
 * unless something else is in the way in one of the two processes: the slab is then mapped elsewhere there, which
 * memclient_address_query() and memclient_buffer_home() tell. Makes no call if its slab is mapped here.
 *     -EINVAL     it names no block of this heap: one of another, or it was not copied whole
 *     -ESTALE     it was taken, freed or taken back since, or its slab is gone
 *     -EALREADY   this member has taken it already
 *     -EPERM      it is for another member
 *     -ENXIO      this reader has not had the slab yet: use memclient_block_open()
 */
MEMCLIENT_API int memclient_block_take(struct memclient_heap *heap, const struct memclient_block *block,
                                       void **address);

/*
 * The same, and opens the slab if it is not mapped here.
 *     -EBADMSG    the token opens something else than that slab
 * and, of a reader, those of memclient_open_token() and memclient_map().
 */
MEMCLIENT_API int memclient_block_open(struct memclient_heap *heap, const struct memclient_block_token *token,
                                       void **address);

/*
 * Takes back what dead members had and what readers have freed, and gives slabs back of which every block is free, but
 * one of each size. Members do so by themselves when they open the heap or find no free block. Makes calls if slabs
 * were added or are given back. The memory of a slab is free once all that have it mapped have noticed: members when
 * they sweep, add a slab or take a block of a new one, readers when they open a slab.
 *     -EPERM      a reader cannot sweep
 */
MEMCLIENT_API int memclient_heap_sweep(struct memclient_heap *heap);

/* The same, and gives back the last free slab of each size, too. */
MEMCLIENT_API int memclient_heap_trim(struct memclient_heap *heap);

struct memclient_heap_info {
    size_t size;
    uint64_t member;         /* as memclient_heap_member() */
    uint64_t slabs;          /* that this member has mapped: all that there are, or of which a reader has had a block */
    uint64_t bytes;          /* that these take, with what they have besides blocks */
    uint64_t blocks;         /* in these, and the sum of: */
    uint64_t blocks_free;    /* free */
    uint64_t blocks_owned;   /* owned by a member or reader, or one that was not swept yet */
    uint64_t blocks_given;   /* given away, and not taken yet */
    uint64_t blocks_mine;    /* of those owned: by this member */
    uint64_t members;        /* who can write, those not swept yet included; 0 for a reader */
    uint64_t readers;        /* likewise, and those who were invited and have not come yet */
    uint64_t block_sizes[8]; /* bytes; as they were rounded up, the smallest first */
    uint64_t n_block_sizes;
};
#define MEMCLIENT_HEAP_INFO_INIT MEMCLIENT_SIZED(struct memclient_heap_info)

/* Counts what there is. Looks at each block. Exact while no member changes anything. */
MEMCLIENT_API int memclient_heap_query(struct memclient_heap *heap, struct memclient_heap_info *info);

#ifdef __cplusplus
}
#endif

#endif
