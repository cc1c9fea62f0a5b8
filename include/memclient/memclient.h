/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmemclient: shareable memory that a broker, memoryd, owns.
 *
 *     struct memclient_buffer *buf;
 *     struct memclient_token token;
 *     void *p;
 *
 *     if (memclient_alloc(NULL, 8 << 20, NULL, &buf) < 0 ||
 *         memclient_map(buf, NULL, &p) < 0 ||
 *         memclient_share(buf, NULL, &token) < 0)
 *         errx(1, "%s", memclient_error());
 *     // send the token's 32 bytes to another process; there:
 *     if (memclient_open_token(NULL, &token, 0, &buf) < 0 || memclient_map(buf, NULL, &p) < 0)
 *         errx(1, "%s", memclient_error());
 *     // p is the same address in both, and so pointers inside the buffer hold
 *
 * Build with `pkg-config --cflags --libs memclient`. memclient(3) and memoryd(8) explain the model.
 *
 * Words. A *buffer* is memory with an id, kept by the broker as a sealed memory file: it cannot shrink, and all of
 * its pages were allocated before anybody could map it, so touching it never raises SIGBUS. (The exceptions: buffers
 * of lazy pools, which have MEMCLIENT_BUFFER_LAZY, and reserved huge pages that somebody else who may write has
 * punched out.) A *handle* (struct memclient_buffer) holds a buffer for this process, with *rights*. A buffer lives as
 * long as a session holds it, or a name or a keeping token keeps it; memory
 * that is still mapped or open anywhere is never taken away. The *home* of a buffer is its fixed address, at which
 * every process may map it. A *reservation* is a range of addresses that no other process's reservation or home
 * overlaps.
 *
 * Errors. Functions return 0 or a negative errno. memclient_error() then returns, in the same thread, a sentence that
 * says what is wrong and what to do. Output parameters are untouched on failure; ownership moves on success only.
 * Besides the errors named below, every function that takes a context or a handle may return
 *     -EINVAL        an argument is not as documented, or the size of a struct is not valid; the sentence names it
 *     -ENOMEM        this process has no memory for the library's own records
 *     -ENOENT, -ECONNREFUSED, -EACCES, -EPROTONOSUPPORT, -EPROTO
 *                    no broker can be reached or spoken to (with memclient_context_open()'s meanings)
 *     -ECONNRESET    the session was lost during the call; whether the broker has done it is unknown
 *     -ENOTCONN      the session is lost and another one could not be opened
 *     -ETIMEDOUT     the call's deadline passed. What a late answer grants is released
 *     -EMFILE        this process has no room for a descriptor that the call needs. What was done is undone
 *     -ESTALE        the handle's session has ended, or is the parent's, and its buffer could not be opened again
 *     -EDQUOT        a limit of this user or session is reached, or the user's share: memoryd.conf(5), SHARES
 *     -ESHUTDOWN     the context was closed, or the broker is stopping
 * unless its comment says that it makes no call, that is, no request to the broker.
 *
 * When the broker goes away. It may be restarted, replaced by a newer one, or killed, and connections may be cut.
 * Mapped memory stays as it is; a call that needs the broker takes longer, at most until the context's deadline. The
 * library connects again, resumes the session, and repeats the requests that had no answer; the broker recognises what
 * it has done already. So nothing is lost, nothing is done twice, and no call fails. (A request at which two brokers
 * died is refused with -EIO.) A release, by the last memclient_buffer_unref() of a handle or by
 * memclient_reservation_release(), does not wait at all: it is noted in memory that the next broker reads, so that it
 * is done even if the program makes no further call. (There is room for about sixty releases; more of them wait for the
 * next broker, a few seconds in all, and then for the context's next call.)
 *
 * Only if the broker does not know the session any more, because the former broker ended for good and left nothing, do
 * calls under way fail with -ECONNRESET. The next call opens a new session. Older handles are then -ESTALE, unless the
 * library can open their buffers again. What they have mapped stays until it is unmapped, and the new broker gives
 * nobody an address in it while the session lasts, so that new buffers can be mapped at once. To make a buffer again
 * where one was, unmap that and allocate with its address. (The new broker may have given another process a home in
 * that range before this process has told what it has mapped: mapping that buffer is -EADDRINUSE, or goes elsewhere
 * with MEMCLIENT_MAP_ANYWHERE.)
 *
 * Sizes, offsets, lengths and addresses are in bytes; times in milliseconds.
 *
 * Structs that may grow start with their size, and are initialised with their _INIT macro: all other fields are then
 * zero, which is the default of each. NULL stands for a struct of defaults. New versions add fields at the end, so
 * programs need not be compiled again. Fields that the struct of an older program lacks are zero. Fields of a newer
 * program that the library does not know must be zero (-EINVAL). Structs that the library fills in are initialised
 * likewise, and it fills in the fields that both know. The headers of the facades follow the same rule.
 *
 * Names and arguments. A function of an object has the object's name in its own, and takes it first, behind what the
 * object is of: memclient_context_close(), memclient_block_give(heap, block, ...). Only a verb that acts on a buffer,
 * which is what the library is about, goes without: memclient_map(), memclient_share(),
 * memclient_revoke_all_tokens(). What asks for something of a buffer, or counts the references to its handle, has it:
 * memclient_buffer_size(), memclient_buffer_ref(). Where something can be found in several ways, the name ends with
 * the one: memclient_open_token(), memclient_open_id(). What is returned by a pointer comes last, and a count before
 * its arrays. memclient_X_query() fills in a struct memclient_X_info, and X_many() does what X() does, for many.
 * Pointers must not be NULL unless it is said; where a function can fail, that is -EINVAL. A handle knows its
 * context, an address does not: functions on ranges of addresses take the context that mapped them, since two may
 * have mapped the same bytes at the same address.
 *
 * Contexts. Wherever a function takes a context, NULL means the process-wide one of memclient_context_default().
 *
 * Threads. Every function may be called from any thread at any time, with the same objects; only the last
 * memclient_buffer_unref(), memclient_reservation_release() and memclient_context_close() of an object must come after
 * all other uses of it. Nothing here is async-signal-safe. The library starts no thread, installs no signal handler,
 * prints nothing and ends no process.
 *
 * fork(). Mappings and reservations stay valid in the child, shared with the parent or, by MEMCLIENT_MAP_COPY_ON_FORK,
 * copied. The child's first call opens a session of its own, and never touches the parent's connection. A handle from
 * the parent works in the child if the library has a descriptor with which it can open the buffer again; else its calls
 * return -ESTALE. exec() leaks nothing: every descriptor is close-on-exec. After vfork() or _Fork(), call nothing but
 * exec.
 *
 * Environment: MEMORYD_SOCKET and MEMORYD_AUTOSTART, see memclient_context_open(), MEMORYD_CACHE, see
 * memclient_cache_put(); ignored in set-uid programs.
 */
#ifndef MEMCLIENT_MEMCLIENT_H
#define MEMCLIENT_MEMCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMCLIENT_VERSION_MAJOR 0
#define MEMCLIENT_VERSION_MINOR 2
#define MEMCLIENT_VERSION_PATCH 0

#define MEMCLIENT_API __attribute__((__visibility__("default")))

/* How the _INIT macros are made: a struct of zeros that knows its size. */
#ifdef __cplusplus
template <typename T> inline T memclient_sized()
{
    T value = T();
    value.size = sizeof(T);
    return value;
}
#define MEMCLIENT_SIZED(type) memclient_sized<type>()
extern "C" {
#else
/* clang-format off */
#define MEMCLIENT_SIZED(type) {.size = sizeof(type)}
/* clang-format on */
#endif

/* A context: one session with the broker, and what was opened through it. */
struct memclient_context;
/* A counted handle of one buffer. A context has at most one handle of a buffer: opening again adds a reference. */
struct memclient_buffer;
/* A range of the host-wide address arena. */
struct memclient_reservation;

/* For deadlines and waits: no bound. */
#define MEMCLIENT_FOREVER UINT64_MAX
/* The most buffers that one memclient_alloc_many() makes, or memclient_map_many() maps. */
#define MEMCLIENT_BATCH_MAX 64
/* The longest name, without its NUL, and with the "uid:N/" before it that names another user's. */
#define MEMCLIENT_NAME_MAX  255
#define MEMCLIENT_NAME_SIZE 272
/* A pool's name with its NUL. */
#define MEMCLIENT_POOL_NAME_SIZE 64
/* A token's text with its NUL. */
#define MEMCLIENT_TOKEN_TEXT_SIZE 65

/* What a holder may do; a bit mask. The kernel enforces READ and WRITE. */
enum memclient_right {
    MEMCLIENT_READ = 1,   /* read and map it */
    MEMCLIENT_WRITE = 2,  /* write it; implies READ */
    MEMCLIENT_SHARE = 4,  /* make tokens with a subset of one's own rights */
    MEMCLIENT_MANAGE = 8, /* publish, bind and unbind names, revoke others' tokens, discard, move, place, destroy */
    /* No right: added to those that are asked for when opening by token, name or id, it accepts a foreign buffer. See
     * memclient_adopt_fd(). */
    MEMCLIENT_ACCEPT_FOREIGN = 256
};

/* Which pages a buffer consists of. */
enum memclient_pages {
    MEMCLIENT_PAGES_ANY = 0,    /* the pool's; without a pool, by the size: see memclient_alloc() */
    MEMCLIENT_PAGES_BASE = 1,   /* the system's base page */
    MEMCLIENT_PAGES_THP = 2,    /* base pages that the kernel backs with transparent huge pages where it can */
    MEMCLIENT_PAGES_HUGETLB = 3 /* huge pages that the system has reserved, of `page_size` */
};

/*
 * Where pages go when there are several nodes, and how strictly. Of the nodes that a placement permits, the one on
 * which the calling thread runs comes first, then the others by their distance from it, as for the kernel's private
 * memory. At the same distance, nodes with processors come before memory-only ones, and after that the one that is
 * named first. A buffer lies whole on the first node that has room for it; if none has, they are filled in this order.
 */
enum memclient_placement {
    MEMCLIENT_PLACEMENT_POOL = 0,       /* the pool's; without a pool: BIND if a single node is named, else LOCAL,
                                         * preferring nodes that are named */
    MEMCLIENT_PLACEMENT_BIND = 1,       /* on these nodes or not at all; verified page by page */
    MEMCLIENT_PLACEMENT_PREFERRED = 2,  /* on these nodes where they have room, else on another: the nearest to
                                         * the caller, or to the node, if one alone is named */
    MEMCLIENT_PLACEMENT_INTERLEAVE = 3, /* parts of `part_size`, round the nodes in the order named */
    MEMCLIENT_PLACEMENT_SPLIT = 4,      /* one contiguous part per node, in the order named, sized by `weights` */
    MEMCLIENT_PLACEMENT_LOCAL = 5       /* preferred on the calling thread's node; `nodes` may stay empty */
};

/* Options of an allocation; a bit mask. */
enum memclient_alloc_flag {
    MEMCLIENT_ALLOC_PUBLISHABLE = 1,   /* it may be published later */
    MEMCLIENT_ALLOC_NO_HOME = 2,       /* it gets no home, unless it is mapped in a reservation */
    MEMCLIENT_ALLOC_NO_DESCRIPTOR = 4, /* it is not mapped soon: no descriptor comes with it */
    MEMCLIENT_ALLOC_SHARED_SOON = 8    /* memclient_share() will be called for it */
};

/* Properties of a buffer; a bit mask. */
enum memclient_buffer_flag {
    MEMCLIENT_BUFFER_PUBLISHABLE = 1,   /* MEMCLIENT_ALLOC_PUBLISHABLE */
    MEMCLIENT_BUFFER_NO_HOME = 2,       /* MEMCLIENT_ALLOC_NO_HOME */
    MEMCLIENT_BUFFER_PUBLISHED = 256,   /* immutable forever */
    MEMCLIENT_BUFFER_FUTURE_ONLY = 512, /* published, but writable mappings made before may still write */
    MEMCLIENT_BUFFER_LAZY = 1024,       /* from a lazy pool: touching it may raise SIGBUS */
    MEMCLIENT_BUFFER_EXPORTED = 2048,   /* a descriptor has left the broker */
    MEMCLIENT_BUFFER_VERIFIED = 4096,   /* every page was seen on the node where it should be */
    MEMCLIENT_BUFFER_FOREIGN = 8192,    /* memory that was allocated elsewhere: memclient_adopt_fd() */
    /* its pages were allocated by the process that it was allocated for, whose control group pays: memoryd.conf(5) */
    MEMCLIENT_BUFFER_CLIENT_CHARGED = 16384,
    MEMCLIENT_BUFFER_WANTS_THP = 32768 /* likewise, as transparent huge pages where there are some */
};

enum memclient_buffer_state {
    MEMCLIENT_BUFFER_STATE_COMMITTING = 0, /* its pages are being allocated */
    MEMCLIENT_BUFFER_STATE_LIVE = 1,       /* a session, a name or a keeping token keeps it */
    MEMCLIENT_BUFFER_STATE_DETACHED = 2,   /* none does, but some process still has it open or mapped */
    /* Its pages are being freed. Or, if `detached_ms` is set, some process may still have them, of which this kernel
     * does not tell (pages of hugetlbfs from Linux 7.0 on), and they are freed when none has. */
    MEMCLIENT_BUFFER_STATE_ENDING = 3
};

/* ---- the library ------------------------------------------------------------------------------------------------- */

/* The library's version, "0.2.0". A static string. */
MEMCLIENT_API const char *memclient_version(void);

/*
 * The sentence of this thread's last failed call, without a full stop or newline at the end; "" before any failure.
 * It stays until this thread's next failing call.
 */
MEMCLIENT_API const char *memclient_error(void);

/*
 * The broker's status of this thread's last failed call, which says more than the errno (POOL_FULL and NO_MEMORY are
 * both -ENOMEM). 0 if not the broker but the library or the kernel refused.
 */
MEMCLIENT_API unsigned memclient_error_status(void);

/*
 * Lets the program end what this thread waits for. While one of its calls waits for the broker, or for another thread
 * that does, the library calls interrupted(data): after each signal that this thread handles, and at least once a
 * second. True: the call returns -EINTR, unless the reply has come just then. What was asked for may have been done
 * nevertheless, as when a call times out: memory that it would have got is given back when the reply comes, but a name
 * may be bound. Calls that release something never fail so. NULL = nobody is asked, as it is at first.
 *
 * The function is called without a lock, so it may take its own. It must not call the library.
 */
MEMCLIENT_API void memclient_set_interrupt(bool (*interrupted)(void *data), void *data);

/* The name of a status, like "POOL_FULL"; "REFUSED" for one that this version does not know. */
MEMCLIENT_API const char *memclient_status_name(unsigned status);

/* ---- the context ------------------------------------------------------------------------------------------------- */

enum memclient_autostart {
    MEMCLIENT_AUTOSTART_ENV = 0, /* start a private broker if none answers, unless MEMORYD_AUTOSTART is 0 */
    MEMCLIENT_AUTOSTART_NEVER = 1,
    MEMCLIENT_AUTOSTART_ALWAYS = 2 /* whatever the environment says */
};

struct memclient_context_options {
    size_t size;
    const char *socket;   /* path of the broker's socket; NULL = found as memclient_context_open() tells */
    const char *program;  /* what listings call this client, at most 63 bytes; NULL = the program's name */
    uint64_t deadline_ms; /* for each call; 0 = 30 000; MEMCLIENT_FOREVER */
    unsigned autostart;   /* enum memclient_autostart */
    bool administrator;   /* may use the connections, sessions and descriptors that are reserved for root and the
                           * broker's own user when the limits are reached. No effect for others */
};
#define MEMCLIENT_CONTEXT_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_context_options)

/*
 * Opens a session with the broker. Without options->socket the library tries $MEMORYD_SOCKET; without that
 * $XDG_RUNTIME_DIR/memoryd/memoryd.sock, then /run/memoryd/memoryd.sock. If nothing is there or nobody listens (ENOENT,
 * ECONNREFUSED) at any of them, it starts a private broker of this user with `memoryd --autostart`, which exits some
 * time after its last client. It starts none if the path was chosen by options->socket or MEMORYD_SOCKET, or in a
 * set-uid program. A socket below $XDG_RUNTIME_DIR must be served by this user, or root.
 *
 *     -ENOENT           there is no broker's socket, and no broker may be started, or its program is missing
 *     -ECONNREFUSED     a socket is there but nobody listens on it
 *     -EACCES           the socket's permissions refuse, or it is served by another user
 *     -EPROTONOSUPPORT  the broker speaks no version of the protocol that this library speaks
 *     -EPROTO           the program that answers is no memoryd broker
 *     -EDQUOT           the limit of the user's sessions, or of the broker's connections or descriptors, is reached
 *     -ENAMETOOLONG     the path does not fit into a socket address
 * A context is closed with memclient_context_close().
 */
MEMCLIENT_API int memclient_context_open(const struct memclient_context_options *options,
                                         struct memclient_context **ctx);

/*
 * Ends the session: what only it kept alive is freed. Everything that was mapped through the context is unmapped and
 * its reservations are released, so nothing may use that memory any more. Handles that are left may only be asked for
 * their properties and unref'ed. NULL and the default context are ignored. Never fails.
 */
MEMCLIENT_API void memclient_context_close(struct memclient_context *ctx);

/*
 * The process-wide context, for which NULL stands, opened with default options at its first use. It lives as long as
 * the process, or until dlclose() unloads the library. Errors are those of memclient_context_open(); the next call
 * tries again.
 */
MEMCLIENT_API int memclient_context_default(struct memclient_context **ctx);

struct memclient_context_info {
    size_t size;
    char socket[108];    /* path of the broker's socket */
    uint64_t session;    /* id of this session */
    uint32_t broker_id;  /* random; also in each of its tokens */
    uid_t broker_uid;    /* who runs it and owns its buffers' inodes */
    uint64_t arena_base; /* homes and reservations are in the arena */
    uint64_t arena_size;
    uint64_t base_page; /* the system's base page size */
    bool simulated;     /* the NUMA nodes are simulated */
    bool autostarted;   /* this context started the broker */
};
#define MEMCLIENT_CONTEXT_INFO_INIT MEMCLIENT_SIZED(struct memclient_context_info)

/* What this context is connected to. Asks the broker, so that it is up to date. */
MEMCLIENT_API int memclient_context_query(struct memclient_context *ctx, struct memclient_context_info *info);

/* One round trip to the broker. Does nothing else. */
MEMCLIENT_API int memclient_broker_ping(struct memclient_context *ctx);

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/*
 * How long a buffer lives on when the session that allocated it ends, with its process or by memclient_context_close():
 *
 *     free             not at all                no name and no keeping token, or a name of MEMCLIENT_NAME_FREE
 *     keep             until the uses are used   MEMCLIENT_TOKEN_KEEPING with a number of uses
 *                      up, or it is revoked
 *     keep for a time  until the time has passed MEMCLIENT_NAME_KEEP_FOR: keep_ms after the binder's session ended;
 *                                                MEMCLIENT_TOKEN_KEEPING with expiry_ms: after it was made
 *     persist          until it is unbound       a name of MEMCLIENT_NAME_KEEP
 *
 * If several of these apply, the longest counts. In any case other sessions that hold the buffer, and processes that
 * have it mapped or open, keep it as long as they like. A restart of the broker ends nothing, and times go on during
 * it.
 */

/* What becomes of a name when the session that bound it ends. */
enum memclient_name_policy {
    MEMCLIENT_NAME_KEEP = 0,    /* it stays until somebody unbinds it */
    MEMCLIENT_NAME_FREE = 1,    /* it is unbound at once */
    MEMCLIENT_NAME_KEEP_FOR = 2 /* it is unbound `keep_ms` later */
};

struct memclient_name_options {
    size_t size;
    unsigned policy;       /* enum memclient_name_policy */
    uint64_t keep_ms;      /* of MEMCLIENT_NAME_KEEP_FOR */
    unsigned group_rights; /* for members of group `gid`: READ, READ|WRITE, and SHARE; 0 = none */
    gid_t gid;
    unsigned other_rights; /* for everybody; 0 = none. The name's own user has all rights */
};
#define MEMCLIENT_NAME_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_name_options)

struct memclient_alloc_options {
    size_t size;
    const char *pool;        /* a pool's name; NULL = chosen by nodes, pages and page_size */
    const uint32_t *nodes;   /* node numbers; enum memclient_placement says which comes first */
    size_t n_nodes;          /* at most 64; 0 = any node */
    unsigned pages;          /* enum memclient_pages */
    uint64_t page_size;      /* of MEMCLIENT_PAGES_HUGETLB; 0 = the system's default huge page */
    unsigned placement;      /* enum memclient_placement */
    uint64_t part_size;      /* of MEMCLIENT_PLACEMENT_INTERLEAVE; a multiple of the granule; 0 = the granule */
    const uint32_t *weights; /* of MEMCLIENT_PLACEMENT_SPLIT, n_nodes of them; NULL = equal parts */
    uint64_t alignment;      /* of the home, a power of two; 0 = the granule */
    uint64_t address;        /* of the home, a multiple of the alignment; 0 = any. Not with alloc_many */
    unsigned flags;          /* enum memclient_alloc_flag */
    uint64_t wait_ms;        /* how long to wait for room if the pool is full; 0 = see below; MEMCLIENT_FOREVER */
    const char *name;        /* bound to the buffer; NULL = none. Not with alloc_many */
    const struct memclient_name_options *name_options; /* NULL = defaults */
};
#define MEMCLIENT_ALLOC_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_alloc_options)

/*
 * Allocates a buffer of `size` bytes, zeroed, committed and sealed, and returns a handle with all rights. Nothing is
 * mapped yet. The context's deadline begins after wait_ms.
 *
 * Without a pool and pages, large buffers get huge pages if there are any: reserved ones (hugetlb), if rounding up adds
 * at most an eighth and they are no farther away than other pages, or else transparent ones. memclient_buffer_query()
 * tells which, and memclient_buffer_granule() in what units the buffer can be mapped: for reserved pages, that is a
 * whole page. Reserved pages are not chosen with MEMCLIENT_ALLOC_NO_HOME, for memory that is interleaved or split over
 * nodes, or for an address that is no multiple of them. To discard, move or map parts, ask for MEMCLIENT_PAGES_BASE or
 * MEMCLIENT_PAGES_THP.
 *
 * A descriptor comes with each buffer, so that it can be mapped without another call. With
 * MEMCLIENT_ALLOC_NO_DESCRIPTOR none does: for buffers that only others map, or this process later, if at all. The
 * library asks for it when it is needed, and memclient_map_many() for many at once. Until then the handle is -ESTALE in
 * a child made by fork().
 *
 * With MEMCLIENT_ALLOC_SHARED_SOON the first memclient_share() of the buffer, without terms, makes no call either: a
 * token comes with the buffer. The flag is a hint. No token comes with memclient_alloc_many(), if a limit of tokens is
 * half used, or while the context has 64 that were not given out. Without the flag the library guesses from what the
 * program has shared so far.
 *
 * Freed memory can be allocated again when its pages have been freed. An allocation that meets a full pool, or a limit
 * of bytes or buffers, waits for memory that is being freed if that is enough, even with wait_ms 0.
 *
 *     -EINVAL      size 0, or an option out of range, or a bad name
 *     -EOVERFLOW   size cannot be rounded up to the granule
 *     -EFBIG       the pool could never hold that much
 *     -ENODEV      no pool has this name, node and page size
 *     -ENXIO       no such node, or it has no memory
 *     -ENOMEM      the pool is full (POOL_FULL), or the kernel has no memory (NO_MEMORY), or none there (MISPLACED)
 *     -ETIMEDOUT   there was no room within wait_ms
 *     -EEXIST      the name is bound already
 *     -EADDRNOTAVAIL, -EADDRINUSE   as for memclient_reserve()
 *     -ENFILE      the broker has no descriptor left
 *     -EOPNOTSUPP  the pool cannot do what a flag or the placement asks
 *
 * From a pool with charge = client (MEMCLIENT_BUFFER_CLIENT_CHARGED) this call allocates the pages in this process.
 * Where its control group may not have that much memory, the kernel kills a process of the group.
 */
MEMCLIENT_API int memclient_alloc(struct memclient_context *ctx, uint64_t size,
                                  const struct memclient_alloc_options *options, struct memclient_buffer **buf);

/* Allocates n buffers with the same options, 1 to MEMCLIENT_BATCH_MAX, all or none. bufs[i] has sizes[i] bytes. */
MEMCLIENT_API int memclient_alloc_many(struct memclient_context *ctx, size_t n, const uint64_t *sizes,
                                       const struct memclient_alloc_options *options, struct memclient_buffer **bufs);

/* Adds a reference to the handle and returns it. NULL gives NULL. Makes no call. */
MEMCLIENT_API struct memclient_buffer *memclient_buffer_ref(struct memclient_buffer *buf);

/*
 * Drops a reference to the handle. Each mapping of the buffer is one, too. With the last one the buffer is released,
 * and the handle is freed. Accepts NULL, returns NULL. Never fails; errno is unchanged.
 *
 * It does not wait for the broker. The context's next call finds the buffer released, and its memory being freed;
 * another session may see it for a moment longer. (If memclient_claim_name() claimed it, the end of the claim is waited
 * for.)
 */
MEMCLIENT_API struct memclient_buffer *memclient_buffer_unref(struct memclient_buffer *buf);

/*
 * The same for n handles, any n, some of which may be NULL or the same. Up to MEMCLIENT_BATCH_MAX buffers are released
 * by one request.
 */
MEMCLIENT_API void memclient_buffer_unref_many(size_t n, struct memclient_buffer *const *bufs);

/*
 * For allocators on top of this library. A buffer that a program frees and soon wants again costs two requests and a
 * mapping each time. memclient_cache_put() saves that: the caller keeps the handle and its mapping, and uses neither
 * until memclient_cache_take(). Meanwhile the broker may give the memory to others without asking this process, which
 * may be idle for hours: when an allocation finds no room or meets a limit, when all other holders have released the
 * buffer, or when a process opens it by name or id. Taking it is then -ESTALE, and the handle is good for nothing but
 * to unmap what is mapped of it, which reads zeros, and to be unref'ed. A buffer that is taken in time still has its
 * contents, which this process has seen.
 *
 * The handle must have no other user and at most one mapping, and no other process may be able to get at the memory:
 * the buffer was not shared or exported, has no name but one that ends with the session, cannot be published, and the
 * process has not forked since. A buffer that was opened may have other holders. A fork does not copy cached buffers.
 *
 * A process caches 64 buffers and 64 MiB at most, or fewer MiB by the environment's MEMORYD_CACHE; 0 = none.
 * memclient_buffer_query() shows it: holder_cached.
 *
 * memclient_cache_put():
 *     -EBUSY       others have it, or may have it
 *     -ENOSPC      the cache is full: unref another one first
 *     -E2BIG       it is larger than the whole cache
 *     -EAGAIN      others need memory, or have had the buffer meanwhile: unref it
 *     -EALREADY    it is cached already
 *     -EOPNOTSUPP  nothing is cached: MEMORYD_CACHE is 0, or the broker is an older version
 * memclient_cache_take():
 *     -ESTALE      the broker has given the memory to others, or another part of this process has opened it
 * memclient_cache_is_lost() says whether memclient_cache_take() would fail. None of the three makes a call.
 */
MEMCLIENT_API int memclient_cache_put(struct memclient_buffer *buf);
MEMCLIENT_API int memclient_cache_take(struct memclient_buffer *buf);
MEMCLIENT_API bool memclient_cache_is_lost(struct memclient_buffer *buf);

/* Properties that the handle knows. `buf` is not NULL. They make no call. */
MEMCLIENT_API uint64_t memclient_buffer_id(const struct memclient_buffer *buf);
MEMCLIENT_API uint64_t memclient_buffer_size(const struct memclient_buffer *buf);    /* as asked for */
MEMCLIENT_API uint64_t memclient_buffer_bytes(const struct memclient_buffer *buf);   /* rounded up to the granule */
MEMCLIENT_API uint64_t memclient_buffer_granule(const struct memclient_buffer *buf); /* unit of offsets and lengths */
MEMCLIENT_API unsigned memclient_buffer_rights(const struct memclient_buffer *buf);  /* enum memclient_right */
MEMCLIENT_API unsigned memclient_buffer_flags(const struct memclient_buffer *buf);   /* as last seen */
/* The home, or NULL: where memclient_map() maps the buffer. It says nothing about whether it is mapped. */
MEMCLIENT_API void *memclient_buffer_home(const struct memclient_buffer *buf);
/* The context the handle belongs to. */
MEMCLIENT_API struct memclient_context *memclient_buffer_context(const struct memclient_buffer *buf);

struct memclient_buffer_info {
    size_t size;
    uint64_t id;
    unsigned state;  /* enum memclient_buffer_state */
    unsigned flags;  /* enum memclient_buffer_flag */
    uint64_t length; /* as asked for */
    uint64_t bytes;  /* committed and charged */
    char pool[MEMCLIENT_POOL_NAME_SIZE];
    unsigned pages;     /* enum memclient_pages */
    unsigned placement; /* enum memclient_placement */
    uint64_t page_size;
    uint64_t huge_bytes; /* of MEMCLIENT_PAGES_THP: what huge pages backed at commit */
    uid_t uid;           /* of the process that allocated it */
    uid_t charged_uid;   /* the user whose limits it counts against */
    pid_t pid;           /* of the process that allocated it */
    uint32_t holds;      /* sessions that hold it */
    uint32_t names;
    uint32_t tokens;
    uint64_t inode;
    uint64_t address;               /* home, 0 = none */
    uint64_t created_ms;            /* wall clock, since 1970 */
    uint64_t detached_ms;           /* likewise; since when only others may have it, else 0 */
    char name[MEMCLIENT_NAME_SIZE]; /* one of its names, or "" */
    uint32_t n_nodes;               /* the nodes to which its bytes are charged */
    uint32_t nodes[64];
    uint64_t node_bytes[64];
    uint32_t n_holders; /* the first sessions that hold it, with their rights */
    uint32_t holder_rights[16];
    uint64_t holders[16];
    uint32_t holder_claims[16]; /* enum memclient_claim of each */
    uint32_t holder_cached[16]; /* 1: the holder has only cached it: memclient_cache_put() */
    uint32_t seals;             /* F_SEAL_* as the kernel has them now, see fcntl(2); 0 = none, or an older broker */
    /* Since when each holds it, wall clock; 0: since before the broker took over from another one, or it is older. */
    uint64_t holder_since_ms[16];
};
#define MEMCLIENT_BUFFER_INFO_INIT MEMCLIENT_SIZED(struct memclient_buffer_info)

/* What the broker knows about a buffer now. */
MEMCLIENT_API int memclient_buffer_query(struct memclient_buffer *buf, struct memclient_buffer_info *info);

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/*
 * A descriptor of the buffer, its *shareable handle*: any process that gets it may map or import it. It keeps the
 * contents alive. rights is MEMCLIENT_READ (O_RDONLY) or MEMCLIENT_READ|MEMCLIENT_WRITE (O_RDWR); 0 = what the handle
 * has. The descriptor is close-on-exec, and the caller closes it.
 *     -EACCES   the handle lacks that right
 *     -EROFS    the buffer is published, so no descriptor is writable any more
 */
MEMCLIENT_API int memclient_export_fd(struct memclient_buffer *buf, unsigned rights, int *fd);

/*
 * Opens the buffer behind a shareable handle. The descriptor stays the caller's, on success as well; the library keeps
 * a duplicate, for mapping. Gives READ, WRITE if the descriptor is open for writing, and SHARE.
 *     -EREMOTE   it is no descriptor of a buffer of this broker
 *     -EBADF     it is no open descriptor
 *     -EBUSY     the buffer was released a moment ago, with more than a thousand tokens to end: try again
 */
MEMCLIENT_API int memclient_import_fd(struct memclient_context *ctx, int fd, struct memclient_buffer **buf);

/*
 * Makes a *foreign* buffer, of memory that neither this library nor the broker allocated, for example a device's. `fd`
 * is a dma-buf, or a file of shared memory or huge pages (memfd, tmpfs) that is no buffer of this broker. The broker
 * keeps a duplicate; the descriptor stays the caller's. A foreign buffer has an id, rights, names and tokens, is listed
 * and counted, and outlives this process and restarts of the broker like any other. What is different:
 *
 *   - It is not sealed, so its allocator may truncate or change it: touching it may raise SIGBUS. A program that opens
 *     it, by token, name or id, must add MEMCLIENT_ACCEPT_FOREIGN to the rights; else that is -EOPNOTSUPP. Its flag is
 *     MEMCLIENT_BUFFER_FOREIGN.
 *   - This library does not map it (-EOPNOTSUPP). memclient_export_fd() gives a duplicate of the descriptor, with the
 *     access and the file offset of `fd`. Asking for less or more access is -EACCES, so let tokens and names grant READ
 *     and WRITE, or READ if `fd` is open for reading only. (For a dma-buf this is what a processor may do; its drivers
 *     decide what a device may do.) If the mode of the file lets others write, as a new memfd's does, they can open it
 *     again through /proc and write all the same: see fchmod(2).
 *   - It has no pool, no home, and no charged bytes. It cannot be published, discarded or moved (-EOPNOTSUPP), nor
 *     imported (-EREMOTE), and a child made by fork() has to open it again.
 *   - The broker cannot tell who still has it open. When nothing holds or keeps it any more, it is gone from the broker
 *     at once; the memory lives as long as others have it.
 *
 * Adopting the same memory twice gives two buffers.
 *     -EOPNOTSUPP  the descriptor is something else: a socket, a device, a file on a disk
 *     -EINVAL      it is not open for reading, its size is 0, or it is a buffer of this broker, to be imported
 *     -EBADF       it is no open descriptor
 *     -EDQUOT      this user or session has as many buffers as the broker's limits allow
 *     -ENFILE      the broker has no descriptor left
 */
MEMCLIENT_API int memclient_adopt_fd(struct memclient_context *ctx, int fd, struct memclient_buffer **buf);

/* Lets its bearer open a buffer. Opaque: programs compare, copy and send the bytes. */
struct memclient_token {
    uint8_t bytes[32];
};

enum memclient_token_flag {
    MEMCLIENT_TOKEN_KEEPING = 1,  /* keeps the buffer alive until used up, expired or revoked; needs uses or expiry */
    MEMCLIENT_TOKEN_ONLY_UID = 2, /* only this user may use it */
    MEMCLIENT_TOKEN_ONLY_GID = 4, /* only members of this group */
    MEMCLIENT_TOKEN_ONLY_PID = 8  /* only this process, and no later one with its number */
};

struct memclient_share_options {
    size_t size;
    unsigned rights;    /* what it grants; 0 = READ, and WRITE if the handle has it */
    unsigned flags;     /* enum memclient_token_flag */
    uint32_t uses;      /* how often it may be opened; 0 = any number of times */
    uint64_t expiry_ms; /* from now; 0 = never */
    uid_t uid;
    gid_t gid;
    pid_t pid;
};
#define MEMCLIENT_SHARE_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_share_options)

/*
 * Makes a token. It keeps the buffer alive only with MEMCLIENT_TOKEN_KEEPING. In a program that shares what it
 * allocates, tokens of default terms come along with the buffers; then this makes no call. Listings show such tokens
 * before they are given out, and they can be revoked.
 *     -EACCES   the handle lacks SHARE, or a right that the token should grant
 */
MEMCLIENT_API int memclient_share(struct memclient_buffer *buf, const struct memclient_share_options *options,
                                  struct memclient_token *token);

/*
 * Makes one token for each of n buffers of one context, any n, with the same terms. results[i] is 0 or a negative
 * errno; tokens[i] is written if it is 0. Returns 0 if all could be tried.
 */
MEMCLIENT_API int memclient_share_many(size_t n, struct memclient_buffer *const *bufs,
                                       const struct memclient_share_options *options, struct memclient_token *tokens,
                                       int *results);

/*
 * Opens the buffer of a token. rights asks for a subset of what it grants; 0 = all of it.
 *     -EBADMSG      these bytes are no token
 *     -EREMOTE      a token of another broker
 *     -ESTALE       its buffer has ended
 *     -EKEYEXPIRED  its uses are used up, or its time has passed
 *     -EKEYREVOKED  it was revoked
 *     -EKEYREJECTED its secret is wrong
 *     -EACCES       it is for another user, group or process, or does not grant these rights
 *     -EROFS        WRITE was asked for and the buffer is published
 *     -EOPNOTSUPP   it is a foreign buffer, and rights lack MEMCLIENT_ACCEPT_FOREIGN
 *     -EBUSY        who allocated it, and pays for its pages, has not allocated all of them (charge = client)
 */
MEMCLIENT_API int memclient_open_token(struct memclient_context *ctx, const struct memclient_token *token,
                                       unsigned rights, struct memclient_buffer **buf);

/*
 * Opens many, any n. results[i] is 0 or a negative errno; bufs[i] is a handle if it is 0, else NULL. Returns 0 if all
 * could be tried; else a negative errno, and nothing was opened.
 */
MEMCLIENT_API int memclient_open_token_many(struct memclient_context *ctx, size_t n,
                                            const struct memclient_token *tokens, unsigned rights,
                                            struct memclient_buffer **bufs, int *results);

/* Revokes a token. What was opened with it stays open. Errors as of memclient_open_token(). */
MEMCLIENT_API int memclient_revoke_token(struct memclient_context *ctx, const struct memclient_token *token);

/* Revokes a token by its serial number, as listings show it: for its maker, holders of MANAGE, administrators. */
MEMCLIENT_API int memclient_revoke_serial(struct memclient_context *ctx, uint64_t serial);

/* Revokes all tokens of a buffer; needs MANAGE (-EACCES). */
MEMCLIENT_API int memclient_revoke_all_tokens(struct memclient_buffer *buf);

/* A token's text: 64 lower-case hexadecimal digits and a NUL. */
MEMCLIENT_API void memclient_token_format(const struct memclient_token *token, char text[MEMCLIENT_TOKEN_TEXT_SIZE]);

/* Reads such a text, in upper or lower case. -EBADMSG: it is none. Makes no call. */
MEMCLIENT_API int memclient_token_parse(const char *text, struct memclient_token *token);

/* ---- publish, discard, move -------------------------------------------------------------------------------------- */

enum memclient_publish_flag {
    /* Forbids only new writable mappings and writes; existing ones stay. memclient_buffer_query() tells. */
    MEMCLIENT_PUBLISH_FUTURE_ONLY = 1
};

/*
 * Makes a buffer immutable, forever and for every process. Needs MANAGE, and MEMCLIENT_ALLOC_PUBLISHABLE at allocation.
 * This process's own writable mappings are made read-only first (a thread that writes then gets SIGSEGV), and are made
 * writable again if the broker refuses. Who has a publishable buffer open for writing can also seal it by fcntl(2), or
 * forbid that it is sealed: give READ to those who shall do neither. What is sealed already can be published.
 *     -EACCES      no MANAGE
 *     -EBUSY       another process has it mapped for writing, or has pinned its pages by input or output; the sentence
 *                  names sessions that may have
 *     -EROFS       it is published already
 *     -EOPNOTSUPP  it was allocated without MEMCLIENT_ALLOC_PUBLISHABLE, or a process that has it open for writing has
 *                  forbidden to seal it; the sentence names sessions that may have
 *     -ETIMEDOUT   another process that may write to it keeps the kernel waiting; it may still become published
 */
MEMCLIENT_API int memclient_publish(struct memclient_buffer *buf, unsigned flags);

/*
 * Gives the pages of a range back to the system. They read as zeros afterwards, in every process, and stay charged to
 * the user. Who touches such a page next has its control group pay for it. Until all are there again, nobody else can
 * open a buffer with MEMCLIENT_BUFFER_CLIENT_CHARGED.
 *
 * Needs WRITE and MANAGE. offset and length are multiples of the granule; length 0 = to the end.
 *     -EACCES      a right is missing
 *     -EROFS       it is published
 *     -EOPNOTSUPP  it has reserved huge pages
 *     -EOVERFLOW   the range goes beyond the buffer's end
 */
MEMCLIENT_API int memclient_discard(struct memclient_buffer *buf, uint64_t offset, uint64_t length);

/*
 * Moves all pages of a buffer to one NUMA node, and its charge with them. From then on it is bound to that node. The
 * contents stay, and so do descriptors, addresses and mappings, in every process. Needs MANAGE. A published buffer can
 * be moved. A buffer that is there already is left alone.
 *
 * The kernel moves no page that another process has in its page tables. This process's own mappings do not matter as
 * long as no thread touches them meanwhile and they are not locked in memory (mlock(2)). Another process's do, if it
 * has touched them, or has mapped for writing at most 64 KiB or memory that it has allocated, until it unmaps them or
 * calls madvise(2) with MADV_DONTNEED, which drops no contents of a shared buffer.
 *     -EACCES      no MANAGE
 *     -ENXIO       there is no such node, or it has no memory
 *     -ENODEV      that node has no pool of such pages
 *     -ENOMEM      the node's budget has no room for it, even once memory that is being freed was waited for, or the
 *                  node has no memory
 *     -EBUSY       another process has some of its pages mapped (the sentence names the sessions that hold it), or it
 *                  is being moved already, or has not all its pages (MEMCLIENT_BUFFER_CLIENT_CHARGED)
 *     -EOPNOTSUPP  it has reserved huge pages, or is of a lazy pool
 * On failure it is charged to its former node, and its pages are moved back. Pages that cannot be, because a process
 * has begun to use them or that node's memory was allocated meanwhile, stay where they are; the buffer then loses
 * MEMCLIENT_BUFFER_VERIFIED.
 */
MEMCLIENT_API int memclient_move(struct memclient_buffer *buf, uint32_t node);

/* ---- names ------------------------------------------------------------------------------------------------------- */

/*
 * Names are per user: "a/b" is one's own, "uid:1000/a/b" another user's. 1-255 bytes of printable UTF-8: no
 * control characters, none that cannot be seen or that change the direction of writing. Parts between slashes are
 * neither empty nor "." nor "..".
 *
 * Binds a name; it keeps the buffer alive. Needs MANAGE.
 *     -EEXIST   it is bound already
 *     -EACCES   no MANAGE
 *     -EDQUOT   a limit of names: of the user, or of the buffer, which has 64 at most
 */
MEMCLIENT_API int memclient_bind_name(struct memclient_buffer *buf, const char *name,
                                      const struct memclient_name_options *options);

/* Opens by name; rights 0 = all that the caller may have. -ENOENT: not bound. -EACCES: not for the caller. -EBUSY: as
 * of memclient_open_token(), for a moment also while the buffer is being allocated with its name. */
MEMCLIENT_API int memclient_open_name(struct memclient_context *ctx, const char *name, unsigned rights,
                                      struct memclient_buffer **buf);

/* How a session keeps others out of a named buffer. */
enum memclient_claim {
    MEMCLIENT_CLAIM_NONE = 0,
    MEMCLIENT_CLAIM_SHARED = 1,   /* keeps out exclusive claims */
    MEMCLIENT_CLAIM_EXCLUSIVE = 2 /* keeps out all other claims */
};

/*
 * Opens by name as memclient_open_name() does, and claims the buffer for this session, like a lock on a file. A claim
 * keeps out claims of other sessions and nothing else: programs can open the buffer without one. So it is for programs
 * that agree on it: one that writes and others that read, or one that runs while another waits to take over.
 *
 * The claim lasts until the handle is freed (see memclient_buffer_unref()), or the session ends with its process. A
 * lost connection or a restart of the broker does not end it. Claiming again is allowed, and makes a shared claim
 * exclusive if no other session has one; an exclusive claim never becomes shared. A child made by fork() has no claim.
 *     -EBUSY    another session's claim keeps this one out; the sentence names that session and its process
 *     -EACCES   the claim is exclusive, and the name does not grant WRITE, whatever rights are asked for
 */
MEMCLIENT_API int memclient_claim_name(struct memclient_context *ctx, const char *name, unsigned rights, unsigned claim,
                                       struct memclient_buffer **buf);

/* Opens by id, for the buffer's owner and administrators. -ENOENT: never given out. -ESTALE: ended. */
MEMCLIENT_API int memclient_open_id(struct memclient_context *ctx, uint64_t id, unsigned rights,
                                    struct memclient_buffer **buf);

/* Unbinds. -ENOENT: not bound. -EACCES: another user's. */
MEMCLIENT_API int memclient_unbind_name(struct memclient_context *ctx, const char *name);

enum memclient_destroy_flag {
    MEMCLIENT_DESTROY_FORCE = 1 /* processes that have it mapped read zeros; for administrators */
};

/*
 * Destroys a buffer at once, whoever holds it, with its names and tokens. For its owner and administrators. Processes
 * that have it mapped keep the contents, unless MEMCLIENT_DESTROY_FORCE is among the flags.
 *     -ENOENT, -ESTALE, -EACCES, -EPERM
 */
MEMCLIENT_API int memclient_destroy_id(struct memclient_context *ctx, uint64_t id, unsigned flags);

/* ---- addresses and mappings -------------------------------------------------------------------------------------- */

enum memclient_reserve_flag {
    MEMCLIENT_RESERVE_PRIVATE = 1 /* in this process only, see below */
};

struct memclient_reserve_options {
    size_t size;
    uint64_t alignment; /* a power of two; 0 = the base page */
    uint64_t address;   /* where the range must start, a multiple of the alignment; 0 = anywhere */
    unsigned flags;     /* enum memclient_reserve_flag */
};
#define MEMCLIENT_RESERVE_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_reserve_options)

/*
 * Reserves `size` bytes of addresses (a multiple of the base page) in the arena for this session, on the whole host and
 * in this process, where the range is inaccessible until something is mapped in it.
 *
 * With MEMCLIENT_RESERVE_PRIVATE it reserves them in this process only: for aliases and growing arrays that need not be
 * at the same address in other processes, of any size for which the kernel has addresses. The range is in the arena
 * only if `address` is. Buffers whose homes are in the range then cannot be mapped there by default while it lasts, but
 * other processes' buffers can be mapped at the addresses where those have them. Mapping a buffer in it does not make
 * its home. Nothing is committed, and no call is made.
 *     -EADDRNOTAVAIL  the arena has no such free range, or at this address or alignment it would cut off more free
 *                     addresses than this user may have
 *     -EADDRINUSE     the range at `address` is taken, on the host or in this process
 *     -ENOMEM         the kernel has no such range for this process, or no more mappings (vm.max_map_count, RLIMIT_AS)
 */
MEMCLIENT_API int memclient_reserve(struct memclient_context *ctx, uint64_t size,
                                    const struct memclient_reserve_options *options,
                                    struct memclient_reservation **res);

/* They make no call. */
MEMCLIENT_API void *memclient_reservation_address(const struct memclient_reservation *res);
MEMCLIENT_API uint64_t memclient_reservation_size(const struct memclient_reservation *res);

/*
 * Releases the range and frees `res`. NULL is ignored. -EBUSY: something that was mapped in it by its address is still
 * there, and nothing is done. Buffers that are mapped at their homes stay mapped, and homes in the range stay taken
 * until their buffers end. It does not wait for the broker, like memclient_buffer_unref().
 */
MEMCLIENT_API int memclient_reservation_release(struct memclient_reservation *res);

/* Access of a mapping: 0 = what the rights and the buffer allow, MEMCLIENT_READ, MEMCLIENT_READ|MEMCLIENT_WRITE, or */
#define MEMCLIENT_NO_ACCESS 256

enum memclient_map_flag {
    MEMCLIENT_MAP_ANYWHERE = 1,      /* at another address if home is not possible */
    MEMCLIENT_MAP_NOT_HOME = 2,      /* at another address than home; with `address`, makes no home there */
    MEMCLIENT_MAP_UNRESERVED = 4,    /* `address` is outside of all reservations of this process */
    MEMCLIENT_MAP_ALONE = 8,         /* not where the same bytes are mapped already */
    MEMCLIENT_MAP_COPY_ON_FORK = 16, /* children made by fork() get a copy of their own, see below */
    MEMCLIENT_MAP_SPARSE = 32        /* little of it will be touched: does not prefault it, see below */
};

struct memclient_map_options {
    size_t size;
    uint64_t offset; /* where in the buffer; a multiple of the granule */
    uint64_t length; /* a multiple of the granule; 0 = to the end */
    void *address;   /* inside a reservation of this process, for the first byte; NULL = home + offset */
    unsigned access; /* see above */
    unsigned flags;  /* enum memclient_map_flag; with `address` not ANYWHERE */
};
#define MEMCLIENT_MAP_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_map_options)

/*
 * Maps a buffer, or a part of it, and sets *address. A mapping is a reference to the handle.
 *
 * At home (the default), every process sees the buffer at the same address. In a reservation, nothing else may be
 * mapped in the range yet; a buffer may be mapped any number of times, and in parts. The first such mapping of a buffer
 * without a home makes its home there, by a call, if the handle has MANAGE, no other buffer has its home there, the
 * reservation is not a private one, and neither MEMCLIENT_MAP_NOT_HOME nor _UNRESERVED is set.
 *
 * If some or all of these bytes of the buffer are mapped at the same address already, by any handle or context of this
 * process, the mappings share their pages: these are there once, until the last of the mappings is unmapped, and
 * meanwhile allow what any of them wants. So this process can write through a mapping for reading as long as another
 * one is for writing. (MEMCLIENT_MAP_ALONE does not share: it fails, or goes elsewhere with MEMCLIENT_MAP_ANYWHERE.)
 *
 * A child made by fork() shares mappings with its parent. With MEMCLIENT_MAP_COPY_ON_FORK it gets a copy, as of
 * malloc()'s memory: no other process sees what it writes there. (In a page that it has not written it may see what the
 * parent writes.) The copy is not the buffer: memclient_address_query() tells so, the child cannot share it, and has to
 * allocate what it wants to share. Pages that a mapping without this flag shows as well stay shared, and so do all if
 * the child gets no memory for the copy. The library keeps a descriptor of each such buffer of 256 KiB or more, up to
 * 256 or a quarter of RLIMIT_NOFILE; other buffers are copied at each fork().
 *
 * A mapping for writing of at most 64 KiB is prefaulted: its pages are entered into the page tables at once. So is the
 * first GiB of what this process has allocated, when it is first mapped for writing: allocating and writing it then
 * takes about as long as the first write of malloc()'s memory. Prefaulting takes up to 0.3 ms for a MiB of base pages,
 * much less if they come from stock, and 8 bytes of page tables for each page; MEMCLIENT_MAP_SPARSE avoids both. Other
 * pages are entered as they are touched, together with those around them if they are read.
 *
 * No call is made if the library has a descriptor of the buffer (it keeps those used last), if all pages are there
 * already, or if a mapping of this handle elsewhere shows the first byte, with enough access in each case; hugetlb
 * pages need the descriptor.
 *
 *     -EADDRINUSE     something else of this process is there already
 *     -EADDRNOTAVAIL  the buffer has no home, or `address` and length are not inside one reservation, and
 *                     MEMCLIENT_MAP_UNRESERVED is not set
 *     -EOVERFLOW      offset and length go beyond the buffer's end
 *     -EACCES         writing was asked for and the handle may only read
 *     -EROFS          writing was asked for and the buffer is published
 *     -EBUSY          it is just being published, here or elsewhere
 *     -ENOMEM         too many mappings (buffers may have 15/16 of vm.max_map_count), or the kernel refuses, for
 *                     example by RLIMIT_AS
 */
MEMCLIENT_API int memclient_map(struct memclient_buffer *buf, const struct memclient_map_options *options,
                                void **address);

/*
 * Maps n buffers, 1 to MEMCLIENT_BATCH_MAX, all or none. options[i] and addresses[i] are those of bufs[i]; all options
 * have the same size; NULL = defaults for all. One call gets all missing descriptors.
 */
MEMCLIENT_API int memclient_map_many(size_t n, struct memclient_buffer *const *bufs,
                                     const struct memclient_map_options *options, void **addresses);

/*
 * Makes the home of a buffer that was mapped without one (MEMCLIENT_MAP_NOT_HOME) where it has been mapped for the
 * longest time, so that processes that open it from now on map it at the same address. For memory that is laid out
 * first and shared later, or never. Needs MANAGE. Makes one call, or none if the buffer has a home already.
 *     -EADDRNOTAVAIL  it is not mapped in a reservation of this session that holds all of it, or another buffer has
 *                     its home there, or the handle lacks MANAGE
 */
MEMCLIENT_API int memclient_make_home(struct memclient_buffer *buf);

/*
 * Changes the access of [address, address + length): parts of mappings, or runs of several without a gap. length 0 =
 * the mapping that starts at `address`, of several the shortest. If several mappings share pages, the call changes the
 * one of just this range, and of several of those the one with least access; what the others want stays allowed. Makes
 * no call.
 *     -EFAULT   a part of it is not mapped by this context; nothing is changed
 *     -EINVAL   the range is not in multiples of the granule
 *     -EACCES   it was mapped for reading only
 */
MEMCLIENT_API int memclient_protect(struct memclient_context *ctx, void *address, uint64_t length, unsigned access);

/*
 * Unmaps [address, address + length), likewise; pages that other mappings share stay. Inside a reservation, the range
 * is reserved as before. Makes no call; buffers whose last references go are released as by
 * memclient_buffer_unref_many(). Errors: -EFAULT, -EINVAL as above.
 */
MEMCLIENT_API int memclient_unmap(struct memclient_context *ctx, void *address, uint64_t length);

/*
 * Withholds [address, address + length), likewise, from children made by fork(), which still get pages that other
 * mappings share. Makes no call.
 */
MEMCLIENT_API int memclient_dont_fork(struct memclient_context *ctx, void *address, uint64_t length);

struct memclient_address_info {
    size_t size;
    struct memclient_context *context; /* which has it */
    void *address;                     /* start of the mapping, of several the one that reaches furthest; or of the
                                         reservation, if nothing is mapped */
    uint64_t length;                   /* likewise */
    struct memclient_buffer *buffer;   /* what is mapped there; NULL = nothing, or a child's copy; see below */
    uint64_t buffer_id;                /* or 0 */
    uint64_t offset;                   /* in the buffer, of the address asked for */
    unsigned access;                   /* MEMCLIENT_READ, MEMCLIENT_READ|MEMCLIENT_WRITE, MEMCLIENT_NO_ACCESS */
    struct memclient_reservation *reservation; /* which it is in, or NULL */
    bool process_private;                      /* that is one of MEMCLIENT_RESERVE_PRIVATE */
};
#define MEMCLIENT_ADDRESS_INFO_INIT MEMCLIENT_SIZED(struct memclient_address_info)

/*
 * What is at an address: any address within a mapping or reservation of any context of this process. The result adds no
 * references: take one to the buffer before anything may unmap it. Makes no call.
 *     -EFAULT   nothing of this library is there
 */
MEMCLIENT_API int memclient_address_query(const void *address, struct memclient_address_info *info);

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* A bit mask for memclient_event_subscribe() and its like. */
enum memclient_event_kind {
    MEMCLIENT_EVENT_PRESSURE = 1,  /* a pool filled up or emptied */
    MEMCLIENT_EVENT_DISCARDED = 2, /* another session discarded part of a buffer, which reads as zeros */
    MEMCLIENT_EVENT_NAME = 4,      /* a name was bound or unbound */
    MEMCLIENT_EVENT_SHUTDOWN = 8,  /* the broker is stopping; nothing is freed */
    /* Events were dropped, or the connection was lost: check again. Every subscriber gets it. */
    MEMCLIENT_EVENT_LOST = 16,

    /* Of a buffer that this session holds, or that is its user's; of any, for an administrator: */
    MEMCLIENT_EVENT_HELD = 32,        /* another session began to hold it */
    MEMCLIENT_EVENT_LEFT = 64,        /* another session holds it no more */
    MEMCLIENT_EVENT_DIED = 128,       /* … since its process died; this never waits for how */
    MEMCLIENT_EVENT_DEATH = 256,      /* how a process died that had a session, or that nobody knows: after its DIED */
    MEMCLIENT_EVENT_PUBLISHED = 512,  /* another session published it */
    MEMCLIENT_EVENT_MOVED = 1024,     /* another session moved it to another node */
    MEMCLIENT_EVENT_DESTROYED = 2048, /* it has ended: it was destroyed, or nobody has a claim on it any more */

    MEMCLIENT_EVENT_HISTORY = 4096 /* memclient_list_history() has something new */
};

struct memclient_event {
    size_t size;
    unsigned kind;                       /* one of enum memclient_event_kind */
    unsigned level;                      /* PRESSURE: 0 = below 85 % used, 1 = above it, 2 = above 95 % */
    uint64_t buffer;                     /* DISCARDED, NAME, HELD to DIED, PUBLISHED to DESTROYED: the buffer's id */
    bool bound;                          /* NAME: bound, else unbound */
    char pool[MEMCLIENT_POOL_NAME_SIZE]; /* PRESSURE */
    char name[MEMCLIENT_NAME_SIZE];      /* NAME; with "uid:N/" before it where it is another user's */
    uint64_t session;                    /* HELD, LEFT, DIED, DEATH: whose; 0 = only its buffer's user may know */
    uid_t uid;                           /* likewise its user; -1 = only that and administrators may know */
    pid_t pid;                           /* likewise its process; 0 */
    unsigned end;                        /* DEATH: MEMCLIENT_END_EXITED, _SIGNAL, _UNKNOWN or _OOM */
    int exit_status;                     /* DEATH: exit status, or signal */
};
#define MEMCLIENT_EVENT_INIT MEMCLIENT_SIZED(struct memclient_event)

/*
 * Sets which events this session gets of everything that it may see; 0 = none.
 *     -EDQUOT   too many sessions of this user have subscribed to HELD and the like
 */
MEMCLIENT_API int memclient_event_subscribe(struct memclient_context *ctx, unsigned mask);

/*
 * Sets which events this session gets, beside those, of one buffer, by its id: DISCARDED, NAME, HELD to DESTROYED; 0 =
 * none. It ends with the buffer and with the session, but not with the broker's process.
 *     -ENOENT   there is no such buffer;  -ESTALE  not any more
 *     -EACCES   it is another user's, and this session does not hold it
 *     -EDQUOT   64 buffers of a session, or too many sessions of this user
 */
MEMCLIENT_API int memclient_event_subscribe_buffer(struct memclient_context *ctx, uint64_t id, unsigned mask);
/* The same of one name, "uid:N/" before another user's, whether it is bound or not: NAME, or 0 = none. 16 at most. */
MEMCLIENT_API int memclient_event_subscribe_name(struct memclient_context *ctx, const char *name, unsigned mask);

/*
 * A descriptor that polls readable when memclient_event_next() should be called, sometimes without an event. It is the
 * library's: do not read or close it. While the broker is away it becomes readable now and then, and
 * memclient_event_next() connects again. In a child made by fork(), call this again.
 */
MEMCLIENT_API int memclient_event_fd(struct memclient_context *ctx, int *fd);

/* Takes the next event; never blocks, unless a new broker does not know the session: then it begins another one, as any
 * call does, for a tenth of a second at most. -EAGAIN: there is none now. Only the last 32 are kept:
 * MEMCLIENT_EVENT_LOST. */
MEMCLIENT_API int memclient_event_next(struct memclient_context *ctx, struct memclient_event *event);

/* ---- status and listings ----------------------------------------------------------------------------------------- */

struct memclient_broker_info {
    size_t size;
    char version[64]; /* of the broker program */
    uint32_t broker_id;
    pid_t broker_pid;
    uid_t broker_uid;
    bool simulated; /* the NUMA nodes are simulated */
    uint64_t uptime_ms;
    uint64_t sessions;
    uint64_t buffers;          /* live */
    uint64_t buffers_detached; /* with `detached_ms`, of all users */
    uint64_t bytes;            /* committed, of all buffers */
    uint64_t names;
    uint64_t tokens;
    uint64_t reservations;
    uint64_t fds; /* open in the broker */
    uint64_t fds_limit;
    uint64_t requests; /* served since its start */
    uint64_t refused;  /* of those */
    uint64_t arena_base;
    uint64_t arena_size;
    char config[256];        /* the configuration file, "" if none */
    pid_t keeper_pid;        /* the broker's parent, which starts the next one */
    uint32_t restarts;       /* former brokers whose state this one has taken over */
    uint64_t quarantined;    /* damaged records of theirs, which nobody uses */
    uint64_t buffers_ending; /* others whose pages are being freed; a broker of 0.1 counts them as detached */
    bool config_stale;       /* the file had mistakes when it was read last, so its former contents are in force */
    uint64_t pools;          /* from which memory is given out; this and what follows is 0 of an older broker */
    uint64_t capacity;       /* bytes that they have together; what several of them share counts once */
    uint64_t used;           /* of `capacity`: not available any more */
};
#define MEMCLIENT_BROKER_INFO_INIT MEMCLIENT_SIZED(struct memclient_broker_info)

/* What the broker is, has and has done. */
MEMCLIENT_API int memclient_broker_query(struct memclient_context *ctx, struct memclient_broker_info *info);

/*
 * Listings call `fn` once for each item. The item, and all it points to, is valid during that call. A non-zero return
 * ends the listing and is returned. `fn` may use the library. What comes or goes meanwhile may or may not be listed;
 * nothing is listed twice. A user's programs see the items of that user; administrators (the broker's user and root)
 * see all.
 */
struct memclient_node_info {
    size_t size;
    uint32_t node;
    uint32_t physical; /* the kernel's number; it differs only if nodes are simulated */
    uint64_t total;    /* the node's memory */
    uint64_t capacity; /* how much of it buffers of base pages may have */
    uint64_t used;     /* of that */
    bool has_cpus;
    bool simulated;
    size_t n_distances; /* to nodes 0, 1, ...; 10 = local */
    const uint32_t *distances;
};
/* The NUMA nodes with memory. */
MEMCLIENT_API int memclient_list_nodes(struct memclient_context *ctx,
                                       int (*fn)(const struct memclient_node_info *node, void *data), void *data);

struct memclient_pool_info {
    size_t size;
    const char *name;
    size_t n_nodes;
    const uint32_t *nodes;
    unsigned pages;     /* enum memclient_pages */
    unsigned placement; /* enum memclient_placement */
    uint64_t page_size;
    uint64_t granule;
    uint64_t part_size;
    size_t n_weights;
    const uint32_t *weights;
    bool lazy; /* pages are allocated on first touch: SIGBUS is possible */
    bool simulated;
    uint64_t capacity;
    uint64_t used;
    uint64_t available; /* what this caller could allocate now in one piece, see below */
    uint64_t buffers;
    bool declared;          /* in the configuration, not made automatically */
    uint64_t stock;         /* pre-allocated for later allocations; not in `used`, and freed when others need memory */
    uint64_t stock_buffers; /* in how many buffers */
    uint64_t stock_ready;   /* bytes of `stock` that are ready for use */
    const char *allow;      /* for whom it is, as memoryd.conf says; "" = everybody */
    bool client_charged;    /* control groups of programs pay for its pages, not the broker's */
};
/*
 * The pools from which this user may allocate. `available` is what the pool and its nodes have left, as far as the
 * limits uid_bytes and session_bytes allow this session. It is exact. Memory that is being freed counts, since an
 * allocation waits for it: as soon as this session has released it, or another one's release has arrived. Memory that a
 * process still has mapped or open does not count.
 */
MEMCLIENT_API int memclient_list_pools(struct memclient_context *ctx,
                                       int (*fn)(const struct memclient_pool_info *pool, void *data), void *data);

/* The buffers, in all states. */
MEMCLIENT_API int memclient_list_buffers(struct memclient_context *ctx,
                                         int (*fn)(const struct memclient_buffer_info *info, void *data), void *data);

enum memclient_buffer_order {
    MEMCLIENT_ORDER_BYTES = 0, /* the largest first */
    MEMCLIENT_ORDER_HOLDS = 1, /* that of the most sessions first */
    MEMCLIENT_ORDER_OLDEST = 2,
    MEMCLIENT_ORDER_NEWEST = 3
};

enum memclient_select_flag {
    MEMCLIENT_SELECT_UID = 1,     /* only what counts against the limits of `uid` */
    MEMCLIENT_SELECT_DETACHED = 2 /* only what has `detached_ms` */
};

struct memclient_select_options {
    size_t size;
    unsigned order; /* enum memclient_buffer_order; of the same number the smallest id comes first */
    unsigned flags; /* enum memclient_select_flag */
    uint32_t most;  /* buffers wanted; 0 = only the sums */
    uid_t uid;
    pid_t pid;        /* allocated by this process; 0 = by any */
    uint64_t session; /* held by this session; 0 = by any, or none */
    const char *pool; /* in this pool; NULL = in any */
};
#define MEMCLIENT_SELECT_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_select_options)

struct memclient_buffer_sums {
    size_t size;
    uint64_t buffers;
    uint64_t bytes;          /* committed and charged */
    uint64_t huge_bytes;     /* of `bytes`: in huge pages, of either kind */
    uint64_t detached;       /* of `buffers`: with `detached_ms` */
    uint64_t detached_bytes; /* of `bytes`: in those */
    uint64_t holds;
};
#define MEMCLIENT_BUFFER_SUMS_INIT MEMCLIENT_SIZED(struct memclient_buffer_sums)

/*
 * Lists the first `most` in an order, of the buffers that the options choose (NULL: none, and the sums of all), and
 * sums over all of those. The broker does the work, so that it costs little to ask every second where a listing of all
 * has thousands of rows: a call for each 16 rows. As in a listing, these are the buffers that this user's programs may
 * see. `sums` may be NULL, and fn may be NULL if most is 0. Each buffer is looked at as it is then: what changes its
 * place in the order meanwhile may be missed or come twice. Threads, fork and returns as of the listings.
 *     -EINVAL   options has a number or a flag without a meaning, or fn is NULL and rows are wanted
 *     -ENODEV   there is no such pool
 *     -ENOSYS   the broker is too old for this call: list all of them
 */
MEMCLIENT_API int memclient_select_buffers(struct memclient_context *ctx,
                                           const struct memclient_select_options *options,
                                           struct memclient_buffer_sums *sums,
                                           int (*fn)(const struct memclient_buffer_info *info, void *data), void *data);

struct memclient_session_info {
    size_t size;
    uint64_t id;
    uid_t uid;
    gid_t gid;
    pid_t pid;
    const char *program; /* what the client calls itself: any text, so escape it to show it */
    bool connected;
    uint64_t created_ms; /* wall clock, since 1970 */
    uint64_t bytes;      /* committed bytes of the buffers that it holds and is charged for */
    uint32_t holds;
    uint32_t tokens;
    uint32_t reservations;
    uint32_t fds_in_flight;
    uint64_t queued_bytes;
    uint32_t waiting;  /* requests being worked on, or waiting for memory; 0 also of an older broker */
    uint64_t requests; /* that have come by the connection that it has now; 0 also of an older broker */
};
/* The sessions, connected or in their grace time. */
MEMCLIENT_API int memclient_list_sessions(struct memclient_context *ctx,
                                          int (*fn)(const struct memclient_session_info *session, void *data),
                                          void *data);

struct memclient_reservation_info {
    size_t size;
    uint64_t id;
    uint64_t session; /* 0 = buffers with their homes in it keep it */
    uint64_t address;
    uint64_t length;
    uint32_t buffers; /* with their homes in it */
    uid_t uid;
};
/* The ranges of the arena that are taken. */
MEMCLIENT_API int memclient_list_reservations(struct memclient_context *ctx,
                                              int (*fn)(const struct memclient_reservation_info *info, void *data),
                                              void *data);

struct memclient_name_info {
    size_t size;
    const char *name;
    uid_t uid;
    uint64_t buffer;
    unsigned policy; /* enum memclient_name_policy */
    uint64_t keep_ms;
    unsigned group_rights;
    gid_t gid;
    unsigned other_rights;
    uint64_t session; /* which bound it, 0 once that has ended */
};
/* The names, and how long they keep their buffers. */
MEMCLIENT_API int memclient_list_names(struct memclient_context *ctx,
                                       int (*fn)(const struct memclient_name_info *name, void *data), void *data);

struct memclient_token_info {
    size_t size;
    uint64_t serial;
    uint64_t buffer;
    unsigned rights;
    unsigned flags; /* enum memclient_token_flag */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    uint32_t uses_left;  /* 0 = any number */
    uint64_t expires_ms; /* from now; 0 = never */
    uid_t maker_uid;
    uint64_t session; /* which made it, 0 once that has ended */
};
/* The tokens that can still be used, without their secrets. */
MEMCLIENT_API int memclient_list_tokens(struct memclient_context *ctx,
                                        int (*fn)(const struct memclient_token_info *token, void *data), void *data);

enum memclient_history_kind {
    MEMCLIENT_HISTORY_REFUSED = 1, /* a request, or items of a batch */
    MEMCLIENT_HISTORY_WAITED = 2,  /* a request got its memory after waiting */
    MEMCLIENT_HISTORY_ENDED = 3,   /* a session */
    MEMCLIENT_HISTORY_STARTED = 4, /* a broker took over from one that had died or was replaced */
    MEMCLIENT_HISTORY_DONE = 5 /* a buffer was published, discarded, moved or destroyed, a name bound or unbound … */
};

/* How a session ended. DIED becomes EXITED, SIGNAL, UNKNOWN or OOM once the parent of the process has waited for it. */
enum memclient_session_end {
    MEMCLIENT_END_GOODBYE = 1, /* the program closed its context */
    MEMCLIENT_END_DIED = 2,    /* with its process; how that ended is not known yet */
    MEMCLIENT_END_EXITED = 3,  /* with its process, whose exit status is `exit_status` */
    MEMCLIENT_END_SIGNAL = 4,  /* with its process, by the signal `exit_status` */
    MEMCLIENT_END_UNKNOWN = 5, /* with its process; how that ended will not be known */
    MEMCLIENT_END_SILENT = 6,  /* its connection was lost, and nothing of it was in use any more */
    MEMCLIENT_END_OOM = 7      /* with its process, by the signal `exit_status`, SIGKILL: probably for want of memory */
};

struct memclient_history_entry {
    size_t size;
    uint64_t serial;   /* grows; an entry whose `count` or `end` changes gets a new one */
    unsigned kind;     /* enum memclient_history_kind */
    uint64_t at_ms;    /* wall clock, since 1970: the last time, … */
    uint64_t first_ms; /* … and the first time */
    uint32_t count;    /* the same refusals of a session are one entry, with the numbers of the last time */
    uid_t uid;
    pid_t pid;
    uint64_t session;    /* 0 = it had none yet */
    const char *program; /* what the client calls itself: any text, so escape it to show it */
    const char *method;  /* the request, like "alloc"; "" if there was none */
    const char *status;  /* of REFUSED: as of memclient_status_name() */
    const char
        *sentence; /* of REFUSED: what the program was told; of DONE: the name that was bound or unbound, or "" */
    /* What there was too little of, with the numbers of that moment; "" and 0 if it was about something else. */
    const char *resource; /* like "bytes" or "tokens" */
    const char *pool;     /* of this pool; "" = of what limits allow */
    uint64_t wanted;
    uint64_t used; /* of `limit` */
    uint64_t limit;
    uint64_t mine;  /* what this user had of it */
    uid_t most_uid; /* who had most of it; (uid_t)-1 = nobody, or another user, which only administrators are told */
    uint64_t most;  /* how much that was */
    uint64_t waited_ms;
    /* Of ENDED; of STARTED only `end`: GOODBYE, the last broker ended in order, DIED, it did not, or 0, not known. */
    unsigned end;      /* enum memclient_session_end */
    int exit_status;   /* of END_EXITED, or the signal of END_SIGNAL and END_OOM */
    uint64_t began_ms; /* wall clock */
    uint64_t bytes;    /* that it was charged for, also of buffers that names, tokens or others keep */
    uint32_t holds;
    uint64_t buffer; /* of DONE: what the last of them was about; 0 = none, or it is not known */
};
/*
 * What was refused, waited for and done, and which sessions ended and how, in the order of the serials, from the one
 * behind `after` on (0 = all). Of each user so much is kept as there is room for, also when the broker dies. Who has
 * seen all up to a serial asks for the rest with that. What happens meanwhile is listed last; also entries that were
 * listed already and have happened again.
 */
MEMCLIENT_API int memclient_list_history(struct memclient_context *ctx, uint64_t after,
                                         int (*fn)(const struct memclient_history_entry *entry, void *data),
                                         void *data);

#define MEMCLIENT_NO_LIMIT UINT64_MAX

struct memclient_limit_info {
    size_t size;
    uid_t uid;
    const char *resource; /* what is limited, as in memoryd.conf: "bytes", "tokens" */
    const char *pool;     /* of this pool, whose capacity is `limit`; "" = of all */
    uint64_t used;
    uint64_t limit;         /* or MEMCLIENT_NO_LIMIT, as the next two */
    uint64_t available;     /* what the user could still have of it now */
    uint64_t session_limit; /* of each session */
    uint32_t share;         /* in percent, of what the others leave of what there is; 100 = all of it */
    const char *key;        /* what to configure, like "uid_bytes in [limits]"; "" of a pool */
};
/* What applies to this user, and how much of it is used; for administrators, to each user who has anything. */
MEMCLIENT_API int memclient_list_limits(struct memclient_context *ctx,
                                        int (*fn)(const struct memclient_limit_info *limit, void *data), void *data);

/*
 * The same of one user, who need not have anything. What applies to a user by one of its groups is known while it has
 * a session.
 *     -EACCES  it is another user, and the caller is no administrator
 */
MEMCLIENT_API int memclient_list_limits_of(struct memclient_context *ctx, uid_t uid,
                                           int (*fn)(const struct memclient_limit_info *limit, void *data), void *data);

struct memclient_check_result {
    size_t size;
    uint64_t buffers;     /* examined */
    uint64_t records;     /* of all kinds */
    uint32_t faults;      /* sums that do not agree: 0 on a healthy broker */
    uint32_t n_sentences; /* about the first of them, and about quarantined records, which are no fault */
    char sentences[16][256];
};
#define MEMCLIENT_CHECK_RESULT_INIT MEMCLIENT_SIZED(struct memclient_check_result)

/* Has the broker check its books against its records. For administrators (-EPERM). */
MEMCLIENT_API int memclient_broker_check(struct memclient_context *ctx, struct memclient_check_result *result);

/*
 * Replaces the broker by the installed version, which takes over everything. Sessions, handles and mappings stay, and
 * calls meanwhile just take longer. Returns when the new program is known to run and the broker begins to stop; when
 * memclient_broker_query() tells another broker_pid, it is done. For administrators.
 *     -EPERM       the caller is no administrator
 *     -EOPNOTSUPP  the new program cannot be started, or finds mistakes in the configuration, so nothing was replaced;
 *                  or this broker has no keeper
 */
MEMCLIENT_API int memclient_broker_upgrade(struct memclient_context *ctx);

enum memclient_reload_what {
    MEMCLIENT_RELOAD_APPLIED = 1, /* a key whose new value is in force, like "[limits] uid_bytes" */
    MEMCLIENT_RELOAD_RESTART = 2, /* a key whose new value takes a restart, as by memclient_broker_upgrade() */
    MEMCLIENT_RELOAD_MISTAKE = 3  /* a sentence that begins with file and line: nothing has changed */
};

struct memclient_reload_line {
    unsigned what; /* enum memclient_reload_what */
    char text[256];
};

struct memclient_reload_result {
    size_t size;
    char config[256]; /* the file whose configuration is in force, "" if there is none */
    uint32_t n_lines; /* if lines are left out, the last one of their kind tells how many */
    struct memclient_reload_line lines[48];
};
#define MEMCLIENT_RELOAD_RESULT_INIT MEMCLIENT_SIZED(struct memclient_reload_result)

/*
 * Has the broker read its configuration file again. Mistakes in the file are no error of the call: then the lines tell
 * them, and nothing has changed. For administrators.
 *     -EPERM       the caller is no administrator
 *     -ENOSYS      the broker is too old for this call: send it SIGHUP instead
 */
MEMCLIENT_API int memclient_broker_reload(struct memclient_context *ctx, struct memclient_reload_result *result);

#ifdef __cplusplus
}
#endif

#endif
