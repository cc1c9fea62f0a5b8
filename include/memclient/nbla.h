/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmemclient-nbla: nnabla's memory class, nbla::Memory, in C, with the memory of a broker, memoryd.
 *
 *     nbla_memory *memory = nbla_memory_new(NULL, 1 << 20, ""), *rest;
 *
 *     if (!memory || nbla_memory_alloc(memory) || nbla_memory_divide(memory, 4096, &rest))
 *         errx(1, "%s", nbla_error());
 *     // two blocks of one allocation, each of which can be shared with other processes:
 *     struct memclient_token token;
 *     uint64_t offset, length;
 *     nbla_memory_token(rest, &token, &offset, &length);
 *
 * Build with `pkg-config --cflags --libs memclient-nbla`. memclient-nbla(3) describes the whole. In C++, with nnabla,
 * <memclient/nbla_memory.hpp> has classes for nnabla's own allocators.
 *
 * Words. A *memory* (nbla_memory) is one block. It has no memory until nbla_memory_alloc() or nbla_memory_bind(). It
 * can be *divided* in two, and divided blocks can be *merged* again; next() and prev() link them. All blocks of one
 * allocation share it; the last of them releases it to the broker. A *physical memory* (nbla_physical_memory), or
 * chunk, is memory without an address. A memory of type *virtual* has chunks behind each other in a range of addresses,
 * and *grows* by more chunks behind them.
 *
 * Device ids. "" is the broker's default. "numa:1" is memory of that node and no other. "numa:0-1" and "numa:0,2" are
 * memory of those nodes and no others, the nearest to the caller first. "interleave:0,1" is memory spread over those
 * nodes page by page. Anything else is the name of a pool of the broker. The id of memory that was opened is the name
 * of its pool.
 *
 * Errors. Functions that return int give 0 or more, or one of enum nbla_status: nnabla's error codes, negated, minus
 * one. nbla_error() then has a sentence in the same thread, also where a function returns NULL or 0 for a failure.
 * Output parameters are untouched on failure. Besides the errors named below, functions that call the broker may fail
 * with NBLA_ERROR_OS if it cannot be reached, or refuses for a reason that has no other code. If an argument is NULL
 * that must not be, functions that can fail give NBLA_ERROR_VALUE; for others the behaviour is undefined.
 *
 * Arguments. The prototypes of what nnabla's class has are laid down by the specification of this interface. Where
 * they have chunks, as nbla_memory_new_virtual(), nbla_memory_grow() and nbla_memory_append_phys() do, the array comes
 * before its count, other than in <memclient/memclient.h>.
 *
 * The broker. A context that is NULL means the process-wide one of memclient_context_default(). A context must outlive
 * what is made with it. Only allocating calls the broker, and making an object on a device other than "", to check that
 * it exists. Mapped memory stays while the broker restarts (see <memclient/memclient.h>).
 *
 * Threads. A memory, together with those that next() and prev() link, is for one thread at a time, as in nnabla, where
 * the allocator's mutex ensures that. Other threads may use other memories meanwhile, also blocks of the same
 * allocation that are no longer linked, and physical memories that have memory.
 *
 * fork(). A child has its own copy of what was allocated, as of malloc()'s memory, so that parent and child may both
 * use their allocators. Of a page that it has not written, the child may see what the parent writes. It cannot share
 * its copy (RUNTIME), but what it allocates itself. A chunk that is not bound gets other memory, zeroed, when the child
 * binds it. Opened memory stays shared. The objects are the child's own: freeing one in a process does not affect the
 * other. MEMCLIENT_MAP_COPY_ON_FORK of <memclient/memclient.h> says what this costs.
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

typedef struct nbla_memory nbla_memory;
typedef struct nbla_physical_memory nbla_physical_memory;

/* Does the device, or another process, still work with the memory? */
typedef enum { NBLA_DEVICE_LOCKED = 0, NBLA_DEVICE_UNLOCKED = 1 } nbla_device_memory_state;

typedef enum {
    NBLA_TYPE_NORMAL = 0, /* alloc() allocates its memory */
    NBLA_TYPE_VIRTUAL = 1 /* bind() maps physical memories */
} nbla_memory_type;

enum nbla_status {
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

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* nnabla's name of a code: "value", "memory"; "unclassified" for any other number. Makes no call. */
MEMCLIENT_NBLA_API const char *nbla_strerror(int error);

/* The sentence of this thread's last failure; "" before the first. It stays until this thread's next failure. */
MEMCLIENT_NBLA_API const char *nbla_error(void);

/* The code of this thread's last failure, for functions that do not return one; 0 before the first. */
MEMCLIENT_NBLA_API int nbla_error_code(void);

/* ---- making memories --------------------------------------------------------------------------------------------- */

/*
 * Makes a memory of `bytes` (0 counts as 1) on a device, without memory yet. NULL and an error:
 *     VALUE    the device does not exist; the sentence lists those that do
 *     MEMORY   the process has no memory for the object
 *     OS       no broker answers whether the device exists
 */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_new(struct memclient_context *ctx, size_t bytes, const char *device_id);

/*
 * Likewise makes a memory of type virtual with a list of n chunks, to each of which it has a reference. bind() gives it
 * addresses. Its bytes are those of all chunks together, or fewer.
 */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_new_virtual(struct memclient_context *ctx, size_t bytes,
                                                        const char *device_id, nbla_physical_memory *const *p,
                                                        size_t n);

/*
 * The operations that a class derived from nbla::Memory overrides. The first four are required; NULL in another one is
 * nnabla's default, as named there. They return 0 or more, or one of enum nbla_status after changing nothing. What the
 * class itself does, with links, bytes and checks, is described with the function of that name below.
 */
struct nbla_memory_ops {
    size_t size; /* of this struct as compiled; it grows like the structs of <memclient/memclient.h> */
    /* Allocates bytes(), and calls nbla_memory_set_pointer(). It may be called again after a failure. */
    int (*alloc)(nbla_memory *memory);
    /* Makes the second block, of bytes() - second_start, with its pointer set. bytes() is still the whole. */
    int (*divide)(nbla_memory *memory, size_t second_start, nbla_memory **second);
    /* Takes over the memory of `from`, the next block. */
    int (*merge_next)(nbla_memory *memory, nbla_memory *from);
    /* Takes over the memory of `from`, the previous block, and calls nbla_memory_set_pointer(). */
    int (*merge_prev)(nbla_memory *memory, nbla_memory *from);
    /* Maps the chunks of the list, and calls nbla_memory_set_pointer(). Default: NOT_IMPLEMENTED. */
    int (*bind)(nbla_memory *memory);
    /* Unmaps them. Default: NOT_IMPLEMENTED. */
    int (*unbind)(nbla_memory *memory);
    /* Maps n chunks right behind: 1; 0 = it cannot. Does not append them to the list. Default: NOT_IMPLEMENTED. */
    int (*grow)(nbla_memory *memory, nbla_physical_memory *const *p, size_t n);
    /* Default: UNLOCKED. */
    nbla_device_memory_state (*get_device_state)(nbla_memory *memory);
    /* Default: nothing. */
    void (*lock_device)(nbla_memory *memory);
    /* Frees the memory, if there is any, and `priv`. Default: nothing. */
    void (*destroy)(nbla_memory *memory);
    /* Default: nothing. */
    void (*unlock_device)(nbla_memory *memory);
    /* The broker's buffer that it lies in, without a reference, and where in that it begins; for export(), token() and
     * id(). Default: NOT_IMPLEMENTED. */
    int (*buffer)(nbla_memory *memory, struct memclient_buffer **buffer, uint64_t *offset);
};

/*
 * Makes a memory of a kind of the program's own, a "subclass". The table must live as long as the memory; priv is for
 * nbla_memory_priv(). Any device_id is accepted. NULL and an error:
 *     VALUE    one of the first four operations is missing
 *     MEMORY   the process has no memory for the object
 */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_new_ops(size_t bytes, const char *device_id, nbla_memory_type type,
                                                    const struct nbla_memory_ops *ops, void *priv);

/* The priv that the memory was made with. For operations. */
MEMCLIENT_NBLA_API void *nbla_memory_priv(nbla_memory *memory);

/* Sets pointer(). For operations. */
MEMCLIENT_NBLA_API void nbla_memory_set_pointer(nbla_memory *memory, void *pointer);

/*
 * Frees the object, and its memory if no other block shares it. Links that lead to it become NULL, so the head of
 * divided memory may be destroyed before the rest. NULL is ignored.
 *     RUNTIME   it has a pointer and a prev(): merge it, or destroy the previous block first. Nothing changes
 */
MEMCLIENT_NBLA_API int nbla_memory_destroy(nbla_memory *memory);

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* These make no call to the broker, and cannot fail. */

/* Bytes of the block. A block that was merged into another keeps the number. */
MEMCLIENT_NBLA_API size_t nbla_memory_bytes(const nbla_memory *memory);

/* The bytes that were requested when it was made, or set since; dividing and merging do not change them. */
MEMCLIENT_NBLA_API size_t nbla_memory_requested_bytes(const nbla_memory *memory);

/* Sets requested_bytes(). With more than INT64_MAX it is bytes() from then on. */
MEMCLIENT_NBLA_API void nbla_memory_set_requested_bytes(nbla_memory *memory, size_t bytes);

/* The device id, until the memory is destroyed. */
MEMCLIENT_NBLA_API const char *nbla_memory_device_id(const nbla_memory *memory);

/* Its type. */
MEMCLIENT_NBLA_API nbla_memory_type nbla_memory_get_type(const nbla_memory *memory);

/* The block's first byte; NULL while it is disabled. */
MEMCLIENT_NBLA_API void *nbla_memory_pointer(nbla_memory *memory);
MEMCLIENT_NBLA_API const void *nbla_memory_const_pointer(const nbla_memory *memory);

/* Is it marked as in use by lock()? */
MEMCLIENT_NBLA_API bool nbla_memory_locked(const nbla_memory *memory);

/* Has it no memory: not yet, no longer after unbind(), or since it was merged into another block? */
MEMCLIENT_NBLA_API bool nbla_memory_disabled(const nbla_memory *memory);

/* The next or the previous block of divided memory, or NULL. A merged block keeps both. */
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_next(const nbla_memory *memory);
MEMCLIENT_NBLA_API nbla_memory *nbla_memory_prev(const nbla_memory *memory);

/* bytes() if it has memory and is the whole allocation; 0 if it is disabled or one of several blocks. */
MEMCLIENT_NBLA_API size_t nbla_memory_bytes_active(const nbla_memory *memory);

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Mark it as in use, or no longer: try_merge() does not take a locked block. Not counted. They make no call. */
MEMCLIENT_NBLA_API void nbla_memory_lock(nbla_memory *memory);
MEMCLIENT_NBLA_API void nbla_memory_release(nbla_memory *memory);

/*
 * Allocates the memory of a block of type normal, zeroed, with all pages. It may be called again after a failure.
 *     VALUE    it has memory already, or its device is gone
 *     MEMORY   there is no room, a limit is reached, or the broker refuses for another reason: free memory, and try
 *              again; or the block is of type virtual
 *     OS       no broker answers
 */
MEMCLIENT_NBLA_API int nbla_memory_alloc(nbla_memory *memory);

/*
 * Divides it in two: the memory keeps the first second_start bytes, and *second, unlocked and linked behind it, has the
 * rest. Copies nothing. requested_bytes() of the first does not change.
 *     VALUE    second_start is 0, or not less than bytes()
 *     MEMORY   it has no memory, or is of type virtual; or the process has no memory for the object
 */
MEMCLIENT_NBLA_API int nbla_memory_divide(nbla_memory *memory, size_t second_start, nbla_memory **second);

/*
 * Takes over the memory of `from`, if that is the next or the previous block: 1. Then `from` is disabled, and still the
 * caller's to destroy. 0 if `from` is NULL, locked, or neither of the two; nothing changes. `memory` may be locked.
 *     RUNTIME   they are linked, but not adjacent parts of one allocation
 */
MEMCLIENT_NBLA_API int nbla_memory_try_merge(nbla_memory *memory, nbla_memory *from);

/* Links the two: left's next() is right, and right's prev() is left. Either may be NULL; former neighbours keep their
 * links. Makes no call. */
MEMCLIENT_NBLA_API void nbla_memory_associate_consecutive(nbla_memory *left, nbla_memory *right);

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

/*
 * Maps the chunks of the list behind each other, in the list's order, after allocating those without memory. pointer()
 * is where they begin. A chunk may be bound in several memories at once, which then show the same bytes. Addresses
 * behind the chunks stay reserved for grow(), as many again or more if the arena has them.
 *
 * Opened chunks whose addresses follow each other in the list's order are mapped there, so that both processes have
 * them at the same addresses. Then grow() takes only chunks that follow likewise.
 *     MEMORY           not of type virtual; bound already; chunks with fewer bytes than the memory; no room
 *     NOT_IMPLEMENTED  this kind of memory has no such operation
 */
MEMCLIENT_NBLA_API int nbla_memory_bind(nbla_memory *memory);

/*
 * Unmaps the chunks and releases the addresses. The memory is disabled; its list of chunks and their contents stay. It
 * may be bound again, and its chunks elsewhere. 0 and no change if the memory is not bound.
 *     MEMORY           not of type virtual
 *     NOT_IMPLEMENTED  as bind()
 */
MEMCLIENT_NBLA_API int nbla_memory_unbind(nbla_memory *memory);

/*
 * Maps n chunks right behind those that are bound: 1, with the same pointer(), and bytes() includes them. It does not
 * append them to the list: call append_phys() then. 0 if there are no addresses for them, or one is wanted elsewhere;
 * nothing changes. If the memory is locked by lock_device(), so are the new chunks.
 *     MEMORY           not of type virtual, or not bound; a chunk could not be allocated
 *     NOT_IMPLEMENTED  as bind()
 */
MEMCLIENT_NBLA_API int nbla_memory_grow(nbla_memory *memory, nbla_physical_memory *const *p, size_t n);

/* The length of the list of chunks, and its i-th (without a reference; NULL behind the last). They make no call. */
MEMCLIENT_NBLA_API size_t nbla_memory_phys_count(const nbla_memory *memory);
MEMCLIENT_NBLA_API nbla_physical_memory *nbla_memory_phys_at(const nbla_memory *memory, size_t i);

/* Appends n chunks to the list, which takes references; a chunk may be in it more than once. Makes no call.
 *     MEMORY   the process has no memory for the list */
MEMCLIENT_NBLA_API int nbla_memory_append_phys(nbla_memory *memory, nbla_physical_memory *const *p, size_t n);

/* Empties the list, and drops its references. Bound chunks stay bound. */
MEMCLIENT_NBLA_API void nbla_memory_clear_phys(nbla_memory *memory);

/* ---- physical memory --------------------------------------------------------------------------------------------- */

/* Makes a chunk of `bytes` (0 counts as 1) on a device, without memory yet. NULL: like nbla_memory_new(). */
MEMCLIENT_NBLA_API nbla_physical_memory *nbla_physical_memory_new(struct memclient_context *ctx, size_t bytes,
                                                                  const char *device_id);

/* Takes a reference, and returns the chunk. NULL gives NULL. */
MEMCLIENT_NBLA_API nbla_physical_memory *nbla_physical_memory_ref(nbla_physical_memory *p);

/* Drops a reference; the last one frees it. Lists and bound memories have references too. NULL is ignored. */
MEMCLIENT_NBLA_API void nbla_physical_memory_unref(nbla_physical_memory *p);

/* Allocates its memory, unless it has it. Returns its bytes, which may be rounded up to whole pages. Small chunks are
 * requested several at once, see memclient-nbla(3), so that most calls make no request. 0 and an error: VALUE, MEMORY
 * and OS as of nbla_memory_alloc(). It may be called again then. */
MEMCLIENT_NBLA_API size_t nbla_physical_memory_alloc(nbla_physical_memory *p);

/* Its bytes: as requested, or, once it has memory, of that. Neither makes a call. */
MEMCLIENT_NBLA_API size_t nbla_physical_memory_bytes(const nbla_physical_memory *p);

/* Does it have memory? */
MEMCLIENT_NBLA_API bool nbla_physical_memory_allocated(const nbla_physical_memory *p);

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/*
 * Processes share a part of a buffer of the broker: a descriptor or a token of the buffer, and the offset and length of
 * the part. Any facade of memoryd opens it. `wanted` is the address of its first byte, and opening fails if it cannot
 * be there; NULL = the address in the process that made it, or any if something else is there already.
 *
 * Blocks that share a page can all be opened at the addresses of the process that made them, in any order, and each any
 * number of times: another mapping of that page there, by whatever interface, is no obstacle, and the page stays until
 * the last user of it is gone. So memory that was made here is opened here at its own address.
 *
 * Opened memory is a memory of type normal with memory (no prev(), no next()), or a chunk. It can be divided, bound and
 * shared in turn. It stays as long as any process has it, also after the end of its maker. All who opened it read and
 * write the same bytes. (A descriptor or token gives access to the whole buffer: memory that is divided among parties
 * that do not trust each other should not be one allocation.)
 */

/* Makes a descriptor, close-on-exec and the caller's to close.
 *     MEMORY           it has no memory; no descriptor is left
 *     RUNTIME          the parent allocated it, before a fork()
 *     NOT_IMPLEMENTED  it consists of several chunks, which are to be shared one by one; or this kind of memory has
 *                      no such operation */
MEMCLIENT_NBLA_API int nbla_memory_export(nbla_memory *memory, int *fd, uint64_t *offset, uint64_t *length);

/* Makes a token, which opens the memory as long as any process has it. Errors as of nbla_memory_export(). */
MEMCLIENT_NBLA_API int nbla_memory_token(nbla_memory *memory, struct memclient_token *token, uint64_t *offset,
                                         uint64_t *length);

/* The id of the buffer that it lies in, as the broker's listings show it; 0 if it has none. Makes no call. */
MEMCLIENT_NBLA_API uint64_t nbla_memory_id(const nbla_memory *memory);

/*
 * Open memory. length 0 = to the end of the buffer. The descriptor stays the caller's.
 *     VALUE    it is no descriptor or token of memory of this broker, or cannot be opened any more; offset and length
 *              are not within the buffer; `wanted` and the offset lie differently in their pages
 *     MEMORY   something else is at `wanted`, or it cannot be there; no room for the mapping or the object
 */
MEMCLIENT_NBLA_API int nbla_memory_import_fd(struct memclient_context *ctx, int fd, uint64_t offset, uint64_t length,
                                             void *wanted, nbla_memory **memory);
MEMCLIENT_NBLA_API int nbla_memory_open_token(struct memclient_context *ctx, const struct memclient_token *token,
                                              uint64_t offset, uint64_t length, void *wanted, nbla_memory **memory);

/* The same for a chunk. They allocate it first if it has no memory, and may fail like nbla_physical_memory_alloc(). */
MEMCLIENT_NBLA_API int nbla_physical_memory_export(nbla_physical_memory *p, int *fd, uint64_t *offset,
                                                   uint64_t *length);
MEMCLIENT_NBLA_API int nbla_physical_memory_token(nbla_physical_memory *p, struct memclient_token *token,
                                                  uint64_t *offset, uint64_t *length);

/* The id of its buffer; 0 while it has no memory. Makes no call. */
MEMCLIENT_NBLA_API uint64_t nbla_physical_memory_id(const nbla_physical_memory *p);

/*
 * Open a chunk. offset, length and `wanted` must be multiples of the granule of its buffer (else VALUE). `wanted` is
 * where nbla_memory_bind() and nbla_memory_grow() map it, and nowhere else; NULL: see there.
 */
MEMCLIENT_NBLA_API int nbla_physical_memory_import_fd(struct memclient_context *ctx, int fd, uint64_t offset,
                                                      uint64_t length, void *wanted, nbla_physical_memory **p);
MEMCLIENT_NBLA_API int nbla_physical_memory_open_token(struct memclient_context *ctx,
                                                       const struct memclient_token *token, uint64_t offset,
                                                       uint64_t length, void *wanted, nbla_physical_memory **p);

/* ---- device state ------------------------------------------------------------------------------------------------ */

/*
 * LOCKED while another process, or another opening or virtual memory in this one, has locked an opened part of this
 * memory, or of a bound chunk of virtual memory, by nbla_memory_lock_device(). UNLOCKED otherwise, and without memory.
 * The kernel keeps the locks, so the answer stays right when a process is killed or the broker restarts. Only the first
 * question about an allocation makes a call to the broker, for a descriptor that stays open as long as the allocation.
 * (A process that has asked about more than 128 allocations makes one for each question about the others.) LOCKED and
 * an error if the state cannot be found out.
 */
MEMCLIENT_NBLA_API nbla_device_memory_state nbla_memory_get_device_state(nbla_memory *memory);

/*
 * Marks memory that this process has opened as in use, until it calls unlock_device(), destroys or unbinds the memory,
 * or ends. (A child forked meanwhile must end, or exec(), too.) The lock prevents nothing. Memory that was made here is
 * not locked: its maker only asks. Locking again is allowed, and not counted. nbla_error_code() reports a failure.
 */
MEMCLIENT_NBLA_API void nbla_memory_lock_device(nbla_memory *memory);
MEMCLIENT_NBLA_API void nbla_memory_unlock_device(nbla_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
