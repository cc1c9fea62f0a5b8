/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmemclient-nbla: nnabla's memory class, nbla::Memory, in C, with memory that a broker, memoryd, owns.
 *
 *     nbla_memory *memory = nbla_memory_new(NULL, 1 << 20, ""), *rest;
 *
 *     if (!memory || nbla_memory_alloc(memory) || nbla_memory_divide(memory, 4096, &rest))
 *         errx(1, "%s", nbla_error());
 *     // two blocks of one piece of memory; any of them can be shared with other processes:
 *     struct memclient_token token;
 *     uint64_t offset, length;
 *     nbla_memory_token(rest, &token, &offset, &length);
 *
 * Build with `pkg-config --cflags --libs memclient-nbla`; memclient-nbla(3) tells it as a whole. In C++, with nnabla,
 * <memclient/nbla_memory.hpp> makes classes of it that nnabla's own allocators take.
 *
 * Words. A *memory* (nbla_memory) is one block: at first without memory, until nbla_memory_alloc() or
 * nbla_memory_bind() gives it some. It can be *divided* in two, and blocks that were divided *merged* again; next()
 * and prev() lead along them. All blocks of one allocation share it: it goes back to the broker with the last of them.
 * A *physical memory* (nbla_physical_memory) is memory without an address, a chunk; a memory of type *virtual* puts
 * chunks behind each other in a range of addresses, and *grows* by putting more behind them.
 *
 * Device ids. "" is the broker's default; "numa:1" memory of that node and no other; "numa:0-1" or "numa:0,2" of those
 * nodes and no others, the nearest to the caller first; "interleave:0,1" spread over them page by page; everything else
 * is the name of a pool of the broker. Memory that was opened has the name of its pool as its id.
 *
 * Errors. Functions that return int give 0 or more, or one of enum nbla_error, which are nnabla's error codes, negated,
 * minus one. nbla_error() then has a sentence in the same thread; it is also there where a function returns NULL or 0
 * for a failure. Output parameters are untouched on failure. Besides what is named below, functions that ask the
 * broker may fail with NBLA_ERROR_OS where it cannot be reached, or refuses for a reason that is no other's. Where an
 * argument must not be NULL and is, functions that can fail give NBLA_ERROR_VALUE; others must not be called so.
 *
 * The broker. Where a function takes a context, NULL means the process-wide one of memclient_default(); it must live
 * longer than what is made with it. Nothing is asked of the broker before memory is needed, except whether a device
 * other than "" exists. Memory that is mapped stays while the broker is restarted (see <memclient/memclient.h>).
 *
 * Threads. A memory, together with those that it is linked to by next() and prev(), is for one thread at a time, as in
 * nnabla, where the allocator's mutex sees to that. Others may be used by other threads meanwhile, blocks of the same
 * allocation that are no longer linked included. So may a physical memory, once it has memory.
 *
 * fork(). What was allocated is the child's own copy there, as malloc()'s memory would be, so that both may go on with
 * what their allocators keep; of a page that the child has not written it may see what the parent writes. It cannot
 * share that (RUNTIME), but what it allocates itself. A chunk that is not bound gets other memory, zeroed, when the
 * child binds it. What was opened stays shared with everybody. The objects are the child's own: what is freed in one of
 * the two stays in the other. What it costs is said at MEMCLIENT_MAP_OWN_IN_CHILD of <memclient/memclient.h>.
 */
#ifndef MEMCLIENT_NBLA_H
#define MEMCLIENT_NBLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memclient.h"

#define MEMCLIENT_NBLA_API __attribute__((__visibility__("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memclient memclient;
typedef struct nbla_memory nbla_memory;
typedef struct nbla_physical_memory nbla_physical_memory;

/* Whether the device, or another process, still works with the memory. */
typedef enum {
    NBLA_DEVICE_LOCKED = 0,
    NBLA_DEVICE_UNLOCKED = 1
} nbla_device_memory_state;

typedef enum {
    NBLA_TYPE_NORMAL = 0, /* it has memory of its own, by alloc() */
    NBLA_TYPE_VIRTUAL = 1 /* it has addresses for physical memories, by bind() */
} nbla_memory_type;

enum nbla_error {
    NBLA_ERROR_UNCLASSIFIED = -1,
    NBLA_ERROR_NOT_IMPLEMENTED = -2,
    NBLA_ERROR_VALUE = -3,
    NBLA_ERROR_TYPE = -4,
    NBLA_ERROR_MEMORY = -5,
    NBLA_ERROR_IO = -6,
    NBLA_ERROR_OS = -7,
    NBLA_ERROR_TARGET_SPECIFIC = -8,
    NBLA_ERROR_TARGET_SPECIFIC_ASYNC = -9,
    NBLA_ERROR_RUNTIME = -10
};

/* ------------------------------------------------------------------------------------------------------- errors */

/* nnabla's name of such a code: "value", "memory"; "unclassified" for a number that is none. Makes no call. */
MEMCLIENT_NBLA_API const char *nbla_strerror(int error);

/* The sentence of this thread's last failure, "" before any. It stays until this thread's next failure. */
MEMCLIENT_NBLA_API const char *nbla_error(void);

/* The code of this thread's last failure, for functions that do not return one; 0 before any. */
MEMCLIENT_NBLA_API int nbla_error_code(void);

/* ------------------------------------------------------------------------------------------------ making memories */

/*
 * A memory of `bytes` (0 counts as 1) on a device; it has no memory yet. NULL and an error:
 *     VALUE    there is no such device; the sentence lists those that there are
 *     MEMORY   the process has no memory for the object
 *     OS       the device must be asked for, and no broker answers
 */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_new(memclient *ctx, size_t bytes, const char *device_id);

/*
 * Likewise, of type virtual, with n chunks in its list, each counted up. It gets addresses by bind(). Its bytes are
 * what the chunks have together, or less.
 */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_new_virtual(memclient *ctx, size_t bytes, const char *device_id,
                                                        nbla_physical_memory *const *p, size_t n);

/*
 * What a class that derives from nbla::Memory overrides. The first four must be there; NULL in one of the others is
 * nnabla's default, which is named with it. They return 0 or more, or one of enum nbla_error, and then leave things as
 * they were. What the class itself does with the result, its links, bytes and checks, is told with the function of that
 * name below.
 */
struct nbla_memory_ops {
    size_t size; /* of this struct, as it was compiled; it grows as the structs of <memclient/memclient.h> */
    /* Gets memory for bytes(), and calls nbla_memory_set_pointer(). May be called again after a failure. */
    int (*alloc)(nbla_memory *memory);
    /* Makes the second block, of bytes() - second_start, with its pointer set. bytes() is still the whole. */
    int (*divide)(nbla_memory *memory, size_t second_start, nbla_memory **second);
    /* Takes over what `from` has, which follows. */
    int (*merge_next)(nbla_memory *memory, nbla_memory *from);
    /* Takes over what `from` has, which precedes, and calls nbla_memory_set_pointer(). */
    int (*merge_prev)(nbla_memory *memory, nbla_memory *from);
    /* Maps the chunks of the list, and calls nbla_memory_set_pointer(). Default: NOT_IMPLEMENTED. */
    int (*bind)(nbla_memory *memory);
    /* Unmaps them. Default: NOT_IMPLEMENTED. */
    int (*unbind)(nbla_memory *memory);
    /* Maps n chunks right behind: 1; 0 = that cannot be. Does not append them to the list. Default: NOT_IMPLEMENTED. */
    int (*grow)(nbla_memory *memory, nbla_physical_memory *const *p, size_t n);
    /* Default: UNLOCKED. */
    nbla_device_memory_state (*get_device_state)(nbla_memory *memory);
    /* Default: nothing. */
    void (*lock_device)(nbla_memory *memory);
    /* Frees what it has and its `priv`, with or without memory. Default: nothing. */
    void (*destroy)(nbla_memory *memory);
    /* Default: nothing. */
    void (*unlock_device)(nbla_memory *memory);
    /* The broker's buffer that it lies in, not counted up, and where in that it begins; for export(), token() and id().
     * Default: NOT_IMPLEMENTED. */
    int (*buffer)(nbla_memory *memory, struct memclient_buffer **buffer, uint64_t *offset);
};

/*
 * A memory of a kind of the program's own: a "subclass". The table must live as long as the memory; priv is what
 * nbla_memory_priv() gives. Any device_id is taken. NULL and an error:
 *     VALUE    one of the first four operations is missing
 *     MEMORY   the process has no memory for the object
 */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_new_ops(size_t bytes, const char *device_id, nbla_memory_type type,
                                                    const struct nbla_memory_ops *ops, void *priv);

/* What the memory was made with; of other kinds, the library's own. For operations. */
MEMCLIENT_NBLA_API void *nbla_memory_priv(nbla_memory *memory);

/* Sets what pointer() gives. For operations. */
MEMCLIENT_NBLA_API void nbla_memory_set_pointer(nbla_memory *memory, void *pointer);

/*
 * Frees the object, and its memory if no other block has part in it. Links of others that lead to it become NULL, so
 * the head of divided memory may go before the rest. NULL is ignored.
 *     RUNTIME   it has a pointer and a prev(): merge it, or free what precedes first. Nothing is done
 */
MEMCLIENT_NBLA_API int nbla_memory_destroy(nbla_memory *memory);

/* ------------------------------------------------------------------------------------------------------ questions */

/* They make no call to the broker, and cannot fail. */

/* Bytes of the block. A block that was merged into another keeps the number. */
MEMCLIENT_NBLA_API size_t nbla_memory_bytes(const nbla_memory *memory);

/* What was asked for: the bytes at its making, or as set; dividing and merging do not change it. */
MEMCLIENT_NBLA_API size_t nbla_memory_requested_bytes(const nbla_memory *memory);

/* Sets that. More than INT64_MAX: requested_bytes() is bytes() from then on. */
MEMCLIENT_NBLA_API void nbla_memory_set_requested_bytes(nbla_memory *memory, size_t bytes);

/* The device id, until the memory is destroyed. */
MEMCLIENT_NBLA_API const char *nbla_memory_device_id(const nbla_memory *memory);

/* Its type. */
MEMCLIENT_NBLA_API nbla_memory_type nbla_memory_get_type(const nbla_memory *memory);

/* The block's first byte; NULL while it is disabled. */
MEMCLIENT_NBLA_API void *nbla_memory_pointer(nbla_memory *memory);
MEMCLIENT_NBLA_API const void *nbla_memory_const_pointer(const nbla_memory *memory);

/* Is it in use, by lock() and release()? */
MEMCLIENT_NBLA_API bool nbla_memory_locked(const nbla_memory *memory);

/* Does it have no memory: not yet, not any more after unbind(), or since it was merged into another block? */
MEMCLIENT_NBLA_API bool nbla_memory_disabled(const nbla_memory *memory);

/* The block behind it, or before it, in divided memory; NULL if there is none. A merged block keeps its two. */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_next(const nbla_memory *memory);
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_prev(const nbla_memory *memory);

/* bytes(), if it has memory and is all of what was allocated; 0 if it is disabled or one of several blocks. */
MEMCLIENT_NBLA_API size_t nbla_memory_bytes_active(const nbla_memory *memory);

/* --------------------------------------------------------------------------------------------------------- blocks */

/* A mark: try_merge() does not take a locked block. Not counted. Makes no call. */
MEMCLIENT_NBLA_API void nbla_memory_lock(nbla_memory *memory);
MEMCLIENT_NBLA_API void nbla_memory_release(nbla_memory *memory);

/*
 * Gets memory for a block of type normal: zeroed, all of its pages allocated. After a failure it may be called again.
 *     VALUE    it has memory already, or its device is gone
 *     MEMORY   there is no room now, a limit is reached, or the broker cannot give any: free some, and try again; or
 *              the block is of type virtual
 *     OS       no broker answers
 */
MEMCLIENT_NBLA_API int nbla_memory_alloc(nbla_memory *memory);

/*
 * Divides it in two: the memory keeps the first second_start bytes, *second gets the rest, not locked, linked behind
 * it. No memory is copied. requested_bytes() of the first stays as it is.
 *     VALUE    second_start is 0, or not less than bytes()
 *     MEMORY   it has no memory, or is of type virtual; or the process has no memory for the object
 */
MEMCLIENT_NBLA_API int nbla_memory_divide(nbla_memory *memory, size_t second_start, nbla_memory **second);

/*
 * Takes over the memory of `from`, if that is the next or the previous block: 1. Then `from` is disabled and still the
 * caller's to destroy. 0, and nothing is done, if `from` is NULL, locked, or neither of the two; whether `memory` is
 * locked does not matter.
 *     RUNTIME   they are linked, but no parts of one allocation that lie next to each other
 */
MEMCLIENT_NBLA_API int nbla_memory_try_merge(nbla_memory *memory, nbla_memory *from);

/* Links the two: left's next() is right, and right's prev() is left. Either may be NULL; former neighbours keep their
 * links. Makes no call. */
MEMCLIENT_NBLA_API void nbla_memory_associate_consecutive(nbla_memory *left, nbla_memory *right);

/* ------------------------------------------------------------------------------------------------- virtual memory */

/*
 * Gives the chunks of the list addresses, behind each other in the list's order, and memory if they have none yet;
 * pointer() is where they begin. The same chunk may be bound in several memories at once, which then show the same
 * bytes. Addresses behind them are kept free, at least as many again where there are, so that grow() succeeds.
 *
 * Chunks that were opened and have addresses behind each other in the list's order are put there, so that they have the
 * same addresses in both processes; there grow() takes only chunks that follow likewise.
 *     MEMORY           not of type virtual; bound already; chunks with fewer bytes than the memory; no room
 *     NOT_IMPLEMENTED  a kind of memory that has no such operation
 */
MEMCLIENT_NBLA_API int nbla_memory_bind(nbla_memory *memory);

/*
 * Takes the addresses away; the memory is disabled, its list of chunks is as before, and so are their contents. It may
 * be bound again, or its chunks elsewhere. Of memory that is not bound: 0, and nothing is done.
 *     MEMORY           not of type virtual
 *     NOT_IMPLEMENTED  as bind()
 */
MEMCLIENT_NBLA_API int nbla_memory_unbind(nbla_memory *memory);

/*
 * Puts n chunks right behind those that are bound: 1, pointer() is the same, and bytes() has theirs as well. They are
 * not appended to the list: then call append_phys(). 0 if there are no addresses for them, or one is wanted elsewhere,
 * and nothing has changed. What is locked by lock_device() stays so with them.
 *     MEMORY           not of type virtual, or not bound; a chunk got no memory
 *     NOT_IMPLEMENTED  as bind()
 */
MEMCLIENT_NBLA_API int nbla_memory_grow(nbla_memory *memory, nbla_physical_memory *const *p, size_t n);

/* The list of chunks: how many, and which at i (not counted up; NULL behind the last). They make no call. */
MEMCLIENT_NBLA_API size_t nbla_memory_phys_count(const nbla_memory *memory);
MEMCLIENT_NBLA_API nbla_physical_memory *nbla_memory_phys_at(const nbla_memory *memory, size_t i);

/* Appends n chunks to the list, each counted up; the same one may be there more than once. Makes no call.
 *     MEMORY   the process has no memory for the list */
MEMCLIENT_NBLA_API int nbla_memory_append_phys(nbla_memory *memory, nbla_physical_memory *const *p, size_t n);

/* Empties the list, and counts them down. What is bound stays bound. */
MEMCLIENT_NBLA_API void nbla_memory_clear_phys(nbla_memory *memory);

/* ------------------------------------------------------------------------------------------------ physical memory */

/* A chunk of `bytes` (0 counts as 1) on a device, counted once; it has no memory yet. NULL as nbla_memory_new(). */
MEMCLIENT_NBLA_API nbla_physical_memory *nbla_physical_memory_new(memclient *ctx, size_t bytes, const char *device_id);

/* Counts it up and returns it. NULL gives NULL. */
MEMCLIENT_NBLA_API nbla_physical_memory *nbla_physical_memory_ref(nbla_physical_memory *p);

/* Counts it down; the last frees it. Lists and bound memories count too. NULL is ignored. */
MEMCLIENT_NBLA_API void nbla_physical_memory_unref(nbla_physical_memory *p);

/* Gets its memory, unless it has it: its bytes, which may have been rounded up to whole pages. Small ones are asked for
 * several at once, see memclient-nbla(3): most calls ask nobody. 0 and an error: VALUE, MEMORY, OS as
 * nbla_memory_alloc(); it may be called again. */
MEMCLIENT_NBLA_API size_t nbla_physical_memory_alloc(nbla_physical_memory *p);

/* Its bytes: as asked for, and once it has memory as that is. They make no call. */
MEMCLIENT_NBLA_API size_t nbla_physical_memory_bytes(const nbla_physical_memory *p);

/* Does it have memory? */
MEMCLIENT_NBLA_API bool nbla_physical_memory_allocated(const nbla_physical_memory *p);

/* -------------------------------------------------------------------------------------------------------- sharing */

/*
 * What other processes get is a part of a buffer of the broker: a descriptor or a token of it, and the offset and
 * length of the part. Any facade of memoryd's opens it. `wanted` is where its first byte should be: there or not at
 * all; NULL = where it is in the process that made it, or anywhere if something else is there already.
 *
 * Blocks that share a page can all be opened where they are in the process that made them, in any order, and the same
 * one as often as one likes: what this process has of that page there already, by whatever interface, is no obstacle,
 * and the page stays until the last that has a part of it goes. So memory that was made here is opened here at its own
 * address.
 *
 * What was opened is a memory of type normal with memory (no prev(), no next()), or a chunk: it can be divided, bound,
 * and shared further. It is there as long as anybody has it; its maker's end takes nothing away. Whoever opened it sees
 * and writes the same bytes. (A descriptor or token gives access to the whole buffer: memory that is divided among
 * parties who do not trust each other should not be one allocation.)
 */

/* The descriptor is close-on-exec and the caller's.
 *     MEMORY           it has no memory; no descriptor is left
 *     RUNTIME          it was allocated by the parent, before a fork()
 *     NOT_IMPLEMENTED  it consists of several chunks, which are to be shared one by one; or a kind of memory that
 *                      has no such operation */
MEMCLIENT_NBLA_API int nbla_memory_export(nbla_memory *memory, int *fd, uint64_t *offset, uint64_t *length);

/* A token keeps nothing: it opens the memory as long as somebody has it. Errors as nbla_memory_export(). */
MEMCLIENT_NBLA_API int nbla_memory_token(nbla_memory *memory, struct memclient_token *token, uint64_t *offset,
                                         uint64_t *length);

/* The number of the buffer that it lies in, as listings of the broker show it; 0 if it has none. Makes no call. */
MEMCLIENT_NBLA_API uint64_t nbla_memory_id(const nbla_memory *memory);

/*
 * Opens it. length 0 = to the end of the buffer. The descriptor stays the caller's.
 *     VALUE    it is no descriptor or token of memory of this broker that can be opened (any more); offset and length
 *              are not within it; `wanted` does not lie in its page as the offset does
 *     MEMORY   something else is at `wanted` already, or it cannot be there; no room for the mapping or the object
 */
MEMCLIENT_NBLA_API int nbla_memory_import_fd(memclient *ctx, int fd, uint64_t offset, uint64_t length, void *wanted,
                                             nbla_memory **memory);
MEMCLIENT_NBLA_API int nbla_memory_open_token(memclient *ctx, const struct memclient_token *token, uint64_t offset,
                                              uint64_t length, void *wanted, nbla_memory **memory);

/* The same for a chunk, which gets memory first if it has none: then it can fail as nbla_physical_memory_alloc(). */
MEMCLIENT_NBLA_API int nbla_physical_memory_export(nbla_physical_memory *p, int *fd, uint64_t *offset,
                                                   uint64_t *length);
MEMCLIENT_NBLA_API int nbla_physical_memory_token(nbla_physical_memory *p, struct memclient_token *token,
                                                  uint64_t *offset, uint64_t *length);

/* The number of its buffer; 0 while it has no memory. Makes no call. */
MEMCLIENT_NBLA_API uint64_t nbla_physical_memory_id(const nbla_physical_memory *p);

/*
 * Opens a chunk. offset, length and `wanted` are multiples of the granule of its buffer (else VALUE). `wanted` is where
 * nbla_memory_bind() and nbla_memory_grow() put it, or nowhere; NULL: see there.
 */
MEMCLIENT_NBLA_API int nbla_physical_memory_import_fd(memclient *ctx, int fd, uint64_t offset, uint64_t length,
                                                      void *wanted, nbla_physical_memory **p);
MEMCLIENT_NBLA_API int nbla_physical_memory_open_token(memclient *ctx, const struct memclient_token *token,
                                                       uint64_t offset, uint64_t length, void *wanted,
                                                       nbla_physical_memory **p);

/* --------------------------------------------------------------------------------------------------- device state */

/*
 * LOCKED while another process, or another opening or virtual memory in this one, has locked what it has opened of this
 * memory by nbla_memory_lock_device(); of virtual memory, of any of the chunks that are bound. Otherwise, and without
 * memory, UNLOCKED. The kernel knows it, so that no answer is wrong because a process was killed or the broker
 * restarted; only the first question about an allocation makes a call, for a descriptor that is kept as long as the
 * allocation. (Where a process has asked about more than 128 allocations, it makes one at each question about the
 * others.) LOCKED also where it cannot be found out, with an error.
 */
MEMCLIENT_NBLA_API nbla_device_memory_state nbla_memory_get_device_state(nbla_memory *memory);

/*
 * Says that this process works with memory that it has opened, until it calls unlock_device(), destroys the memory or
 * unbinds it, or ends. (A child made by fork() meanwhile must end, or exec(), too.) Nobody is kept from anything. Of
 * memory that was made here it does nothing: who made it asks. Locking again is allowed, and not counted. A failure is
 * told by nbla_error_code().
 */
MEMCLIENT_NBLA_API void nbla_memory_lock_device(nbla_memory *memory);
MEMCLIENT_NBLA_API void nbla_memory_unlock_device(nbla_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
