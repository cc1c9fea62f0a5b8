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
 * Build with `pkg-config --cflags --libs memclient`. The model behind it is told in memclient(3) and memoryd(8).
 *
 * Words. A *buffer* is memory with an id, kept by the broker as a sealed memory file: it cannot shrink, and all of
 * its pages were allocated before anybody could map it, so touching it never raises SIGBUS (pools declared lazy are
 * the exception and say so in MEMCLIENT_BUFFER_LAZY). A *handle* (struct memclient_buffer) is this process's claim
 * on a buffer, with *rights*. A buffer lives as long as some session has a claim on it, or a name or a keeping
 * token does; memory that is still mapped or open anywhere is never taken away. A *home* is the address at
 * which every process may map the buffer. A *reservation* is a range of addresses that no other process's
 * reservation or home overlaps.
 *
 * Errors. Functions return 0, or a negative errno; memclient_error() then has a sentence in the same thread that
 * says what is wrong and what to do. Output parameters are untouched on failure, ownership moves on success only.
 * Besides the errors named below, every function that takes a context or a handle may return
 *     -EINVAL        an argument is outside of what is documented, or an option struct has no valid size
 *     -ENOMEM        this process has no memory for the library's own records
 *     -ENOENT, -ECONNREFUSED, -EACCES, -EPROTONOSUPPORT, -EPROTO
 *                    no broker can be reached or spoken to (with memclient_open()'s meanings)
 *     -ECONNRESET    the session was lost during the call; whether the broker has done it is unknown
 *     -ENOTCONN      the session is lost and another one could not be opened
 *     -ETIMEDOUT     the call's deadline passed. What a late answer grants is given back
 *     -EMFILE        this process has no room for a descriptor that the call needs. What was done is undone
 *     -ESTALE        the handle's session has ended, or is the parent process's, and it could not be claimed anew
 *     -EDQUOT        a limit of this user or session is reached
 *     -ESHUTDOWN     the context was closed, or the broker is stopping
 * except where it says that no call to the broker is made.
 *
 * When the broker goes away. It may be restarted, replaced by a newer one, or killed, and connections may be cut.
 * Memory that is mapped stays as it is; a call that needs the broker takes longer, at most until the context's
 * deadline. The library connects again, goes on with the session, and asks again for what it had no answer to; the
 * broker recognises what it has done already. So nothing is lost, nothing is done twice, and no call fails. (At the
 * second broker that dies of a request, that one is refused with -EIO.) What is given back, by the last
 * memclient_buffer_unref() of a handle or by memclient_reservation_release(), does not even wait: it is noted in memory
 * that the next broker reads, so that it is given back although the program never calls again. (There is room for some
 * sixty such calls; more of them wait for the next broker, some seconds altogether, and then for the context's next
 * call.) Only if the broker does not know the session any more,
 * because the former one ended for good and left nothing behind, calls under way fail with -ECONNRESET; the next call
 * opens a new session, in which older handles are -ESTALE unless they can be claimed anew. What is mapped through them
 * stays as it is until it is unmapped, and the new broker gives nobody an address in it while the session lasts, so
 * that new buffers can be mapped at once. To make one again where it was, unmap that and allocate with its address. (A
 * buffer that the new broker gave somebody before this process has said what it has may have its home in there: mapping
 * that one is -EADDRINUSE, or goes elsewhere with MEMCLIENT_MAP_ANYWHERE.)
 *
 * Sizes, offsets, lengths and addresses are in bytes; times in milliseconds.
 *
 * Structs that may grow start with their size and are initialised with their _INIT macro; all other fields then are
 * zero, which is the default of each. NULL stands for a struct of defaults. New versions add fields at the end, so
 * programs need not be compiled again. Of a program that is older than the library, fields that it does not have are
 * zero; of one that is newer, fields that the library does not have must be zero (-EINVAL). Structs that the library
 * fills in are initialised likewise, and filled as far as both go. This holds in all headers beside this one.
 *
 * Contexts. Wherever a function takes a context, NULL means the process-wide one of memclient_default().
 *
 * Threads. Every function may be called from any thread at any time, with the same objects; only the last
 * memclient_buffer_unref(), memclient_reservation_release() and memclient_close() of an object must come after all
 * other uses of it. Nothing here is async-signal-safe. The library starts no thread, installs no signal handler,
 * prints nothing and ends no process.
 *
 * fork(). Mappings and reservations stay valid in the child, shared with the parent or, by MEMCLIENT_MAP_OWN_IN_CHILD,
 * copied. The child's first call opens a session of its own, and never touches the parent's connection. A handle that
 * came from the parent works in the child as long as the child can claim the buffer anew (the library tries, with the
 * descriptors it has at hand), else its calls return -ESTALE.
 * exec() leaks nothing: every descriptor is close-on-exec. After vfork() or _Fork(), call nothing but exec.
 *
 * Environment: MEMORYD_SOCKET and MEMORYD_AUTOSTART, see memclient_open(), MEMORYD_CACHE, see memclient_cache_put();
 * ignored in set-uid programs.
 */
#ifndef MEMCLIENT_MEMCLIENT_H
#define MEMCLIENT_MEMCLIENT_H


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMCLIENT_VERSION_MAJOR 0
#define MEMCLIENT_VERSION_MINOR 1
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
#define MEMCLIENT_SIZED(type) {.size = sizeof(type)}
#endif

/* The context: one session with the broker, and what was opened through it. */
struct memclient;
/* A counted handle of one buffer. One context has at most one handle of a buffer: opening again counts it up. */
struct memclient_buffer;
/* A range of the host-wide address arena. */
struct memclient_reservation;

/* For deadlines and waits: no bound. */
#define MEMCLIENT_FOREVER UINT64_MAX
/* The most buffers that one memclient_alloc_many() makes, or memclient_map_many() maps. */
#define MEMCLIENT_BATCH_MAX 64
/* The longest name, without its NUL, and with the "uid:N/" before it that names another user's. */
#define MEMCLIENT_NAME_MAX 255
#define MEMCLIENT_NAME_SIZE 272
/* A pool's name with its NUL. */
#define MEMCLIENT_POOL_NAME_SIZE 64
/* Characters of a token's text, without the NUL. */
#define MEMCLIENT_TOKEN_TEXT 64

/* What a holder may do; a bit mask. READ and WRITE are enforced by the kernel. */
enum memclient_right {
    MEMCLIENT_READ = 1,   /* read and map it */
    MEMCLIENT_WRITE = 2,  /* write it; implies READ */
    MEMCLIENT_SHARE = 4,  /* make tokens with a subset of one's own rights */
    MEMCLIENT_MANAGE = 8  /* publish, bind and unbind names, revoke others' tokens, discard, move, place, destroy */
};

/* Beside the rights in what opens a buffer by token, name or id: it may be a foreign one. See memclient_adopt_fd(). */
enum memclient_accept {
    MEMCLIENT_ACCEPT_FOREIGN = 256
};

/* Which pages a buffer consists of. */
enum memclient_pages {
    MEMCLIENT_PAGES_ANY = 0,     /* the pool's; without a pool, what suits the size: see memclient_alloc() */
    MEMCLIENT_PAGES_BASE = 1,    /* the system's base page */
    MEMCLIENT_PAGES_THP = 2,     /* base pages that the kernel backs with transparent huge pages where it can */
    MEMCLIENT_PAGES_HUGETLB = 3  /* huge pages set aside by the system, of `page_size` */
};

/*
 * Where pages go when there are several nodes, and how strictly. Of the nodes that a placement permits the one on which
 * the calling thread runs comes first, then the others by their distance from it, as the kernel has it for private
 * memory; those with processors before memory-only ones that are as far, and of equals the one that is named first. A
 * buffer lies whole on the first that has room for it; if none has, they are filled in this order.
 */
enum memclient_placement {
    MEMCLIENT_PLACEMENT_POOL = 0,       /* as the pool has it; without a pool: BIND to a single node that is named,
                                         * else LOCAL, and on those that are named before others */
    MEMCLIENT_PLACEMENT_BIND = 1,       /* on these nodes or not at all; verified page by page */
    MEMCLIENT_PLACEMENT_PREFERRED = 2,  /* on these nodes where they have room, else on another: the nearest to
                                         * the caller, or to the node, if one alone is named */
    MEMCLIENT_PLACEMENT_INTERLEAVE = 3, /* parts of `part_size` round the nodes, as they are named */
    MEMCLIENT_PLACEMENT_SPLIT = 4,      /* one contiguous part per node, as they are named, sized by `weights` */
    MEMCLIENT_PLACEMENT_LOCAL = 5       /* preferred on the calling thread's node; `nodes` may stay empty */
};

/* Properties of a buffer; a bit mask in memclient_buffer_info.flags. The first two are asked for at allocation. */
enum memclient_buffer_flag {
    MEMCLIENT_PUBLISHABLE = 1,            /* it may be published later */
    MEMCLIENT_NO_ADDRESS = 2,             /* it was made without a home */
    MEMCLIENT_NO_DESCRIPTOR = 4,          /* in memclient_alloc_options only: it is not mapped soon, see there */
    MEMCLIENT_SHARED_SOON = 8,            /* likewise: memclient_share() will be called for it */
    MEMCLIENT_BUFFER_PUBLISHED = 256,     /* immutable for good */
    MEMCLIENT_BUFFER_FUTURE_ONLY = 512,   /* published, but writable mappings made before may still write */
    MEMCLIENT_BUFFER_LAZY = 1024,         /* of a lazy pool: touching it may raise SIGBUS */
    MEMCLIENT_BUFFER_EXPORTED = 2048,     /* a descriptor has left the broker */
    MEMCLIENT_BUFFER_VERIFIED = 4096,     /* every page was seen on the node where it should be */
    MEMCLIENT_BUFFER_FOREIGN = 8192       /* the broker did not make its memory: memclient_adopt_fd() */
};

enum memclient_buffer_state {
    MEMCLIENT_STATE_COMMITTING = 0, /* its pages are being allocated */
    MEMCLIENT_STATE_LIVE = 1,       /* it has a claim, a name or a keeping token */
    MEMCLIENT_STATE_DETACHED = 2,   /* it has none, but somebody still has it open or mapped */
    MEMCLIENT_STATE_ENDING = 3      /* its pages are being given back */
};

/* ------------------------------------------------------------------------------------------------- the library */

/* The library's version, "0.1.0". A static string. */
MEMCLIENT_API const char *memclient_version(void);

/*
 * The sentence of this thread's last failed call, without a full stop or newline at the end; "" before any failure.
 * It stays until this thread's next failing call.
 */
MEMCLIENT_API const char *memclient_error(void);

/*
 * The broker's status number of this thread's last failed call: finer than the errno (POOL_FULL and NO_MEMORY are
 * both -ENOMEM). 0 if the library or the kernel, not the broker, refused.
 */
MEMCLIENT_API unsigned memclient_error_status(void);

/* "POOL_FULL" and the like for such a number; "REFUSED" for a number that this version does not know. */
MEMCLIENT_API const char *memclient_status_name(unsigned status);

/* -------------------------------------------------------------------------------------------------- the context */

enum memclient_autostart {
    MEMCLIENT_AUTOSTART_ENV = 0,   /* start a private broker if none answers, unless MEMORYD_AUTOSTART is 0 */
    MEMCLIENT_AUTOSTART_NEVER = 1,
    MEMCLIENT_AUTOSTART_ALWAYS = 2 /* whatever the environment says */
};

struct memclient_options {
    size_t size;
    const char *socket;   /* path of the broker's socket; NULL = found as memclient_open() tells */
    const char *program;  /* what listings call this client, at most 63 bytes; NULL = the program's name */
    uint64_t deadline_ms; /* for each call; 0 = 30 000; MEMCLIENT_FOREVER */
    unsigned autostart;   /* enum memclient_autostart */
    bool administrator;   /* this program looks at the broker or mends it: it gets in by what is kept for root and the
                           * broker's own user, where the limits leave no room. Others have nothing of it */
};
#define MEMCLIENT_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_options)

/*
 * Opens a session with the broker. Without options->socket the broker is looked for at $MEMORYD_SOCKET; without that
 * at $XDG_RUNTIME_DIR/memoryd/memoryd.sock, then at /run/memoryd/memoryd.sock. If nothing is there or nobody listens
 * (ENOENT, ECONNREFUSED) at any of them, a private broker of this user is started with `memoryd --autostart`, which
 * exits some time after its last client. None is started when the path was chosen by options->socket or MEMORYD_SOCKET,
 * or in a set-uid program. A socket below $XDG_RUNTIME_DIR must be served by this user itself.
 *
 *     -ENOENT           no broker's socket exists, and none was to be started or found to start
 *     -ECONNREFUSED     a socket is there but nobody listens on it
 *     -EACCES           the socket's permissions refuse, or it is served by a user who should not
 *     -EPROTONOSUPPORT  the broker speaks no version of the protocol that this library does
 *     -EPROTO           what answers is no memoryd broker
 *     -EDQUOT           the user has as many sessions, or the broker as many connections or descriptors, as may be
 *     -ENAMETOOLONG     the path does not fit into a socket address
 * A context is closed with memclient_close().
 */
MEMCLIENT_API int memclient_open(const struct memclient_options *options, struct memclient **ctx);

/*
 * Ends the session: what only it kept alive is freed. All that was mapped through the context is unmapped and its
 * reservations are released, so nothing may use that memory any more. Handles that are left may only be asked for
 * their properties and unref'ed. NULL and the default context are ignored. Never fails.
 */
MEMCLIENT_API void memclient_close(struct memclient *ctx);

/*
 * The process-wide context, opened with default options at its first use; it is what NULL stands for.
 * It lives as long as the process, or until dlclose() takes the library away. Errors are those of memclient_open(); the
 * next call tries again.
 */
MEMCLIENT_API int memclient_default(struct memclient **ctx);

struct memclient_connection_info {
    size_t size;
    char socket[108];     /* path of the broker's socket */
    uint64_t session;     /* id of this session */
    uint32_t broker_id;   /* random; also in each of its tokens */
    uint32_t broker_uid;  /* who runs it and owns its buffers' inodes */
    uint64_t arena_base;  /* where homes and reservations come from */
    uint64_t arena_size;
    uint64_t base_page;   /* the system's base page size */
    bool simulated;       /* NUMA nodes are simulated ones */
    bool autostarted;     /* this context started the broker */
};
#define MEMCLIENT_CONNECTION_INFO_INIT MEMCLIENT_SIZED(struct memclient_connection_info)

/* What this context is connected to. Asks the broker, so that it is true now. */
MEMCLIENT_API int memclient_connection(struct memclient *ctx, struct memclient_connection_info *info);

/* One round trip to the broker that does nothing. */
MEMCLIENT_API int memclient_ping(struct memclient *ctx);

/* ------------------------------------------------------------------------------------------------------- buffers */

/*
 * What becomes of a buffer when the session that made it ends, with its process or by memclient_close():
 *
 *     free             it ends                   no name and no keeping token, or a name of MEMCLIENT_NAME_FREE
 *     keep             until it was opened so    MEMCLIENT_TOKEN_KEEPING with a number of uses
 *                      often, or is revoked
 *     keep for a time  until the time is over    MEMCLIENT_NAME_KEEP_FOR: keep_ms after the binder's session ended;
 *                                                MEMCLIENT_TOKEN_KEEPING with expiry_ms: after it was made
 *     persist          until it is unbound       a name of MEMCLIENT_NAME_KEEP
 *
 * Several of them keep it until the last is over. Claims of other sessions, and whoever has it mapped or open, keep it
 * as long as they like in any case. A restart of the broker counts as nothing, and times go on during it.
 */

/* What becomes of a name when the session that bound it ends. */
enum memclient_name_policy {
    MEMCLIENT_NAME_KEEP = 0,    /* it stays until somebody unbinds it */
    MEMCLIENT_NAME_FREE = 1,    /* it is unbound */
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
    const uint32_t *nodes;   /* node numbers; which of them comes first: see enum memclient_placement */
    size_t n_nodes;          /* at most 64; 0 = any node */
    unsigned pages;          /* enum memclient_pages */
    uint64_t page_size;      /* of MEMCLIENT_PAGES_HUGETLB; 0 = the system's default huge page */
    unsigned placement;      /* enum memclient_placement */
    uint64_t part_size;      /* of MEMCLIENT_PLACEMENT_INTERLEAVE; a multiple of the granule; 0 = the granule */
    const uint32_t *weights; /* of MEMCLIENT_PLACEMENT_SPLIT, n_nodes of them; NULL = equal parts */
    uint64_t alignment;      /* of the home, a power of two; 0 = the granule */
    uint64_t address;        /* the wanted home, a multiple of the alignment; 0 = any. Not with alloc_many */
    unsigned flags;          /* MEMCLIENT_PUBLISHABLE, _NO_ADDRESS, _NO_DESCRIPTOR, _SHARED_SOON */
    uint64_t wait_ms;        /* how long to wait for room when the pool is full; 0 = see below; MEMCLIENT_FOREVER */
    const char *name;        /* bind this name with it; NULL = none. Not with alloc_many */
    const struct memclient_name_options *name_options; /* NULL = defaults */
};
#define MEMCLIENT_ALLOC_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_alloc_options)

/*
 * Makes a buffer of `size` bytes, zeroed, committed and sealed, and gives a handle with all rights; nothing is
 * mapped yet. The context's deadline begins after wait_ms.
 *
 * Without a pool and pages, large buffers get huge pages where there are such: set aside by the system, if rounding up
 * adds at most an eighth and they are no farther away than other pages, or transparent ones. memclient_buffer_info()
 * says which it got, memclient_buffer_granule() in what units it can be mapped: of pages set aside that is a whole one.
 * Nobody gets these who needs parts: neither with MEMCLIENT_NO_ADDRESS, nor interleaved or split over nodes, nor at an
 * address that is no multiple of them. Whoever wants to discard, to move or to map parts says MEMCLIENT_PAGES_BASE or
 * MEMCLIENT_PAGES_THP.
 *
 * A descriptor comes with each buffer, so that it can be mapped without another call. With MEMCLIENT_NO_DESCRIPTOR none
 * does: for buffers that others are to map, or this process later, if at all. It is asked for when it is needed, by
 * memclient_map_many() for many at once. Until then a handle without it is -ESTALE in a child made by fork().
 *
 * With MEMCLIENT_SHARED_SOON the first memclient_share() of the buffer, without terms, makes no call either: a token
 * comes with the buffer. It is a hint. None comes with memclient_alloc_many(), where a limit of tokens is half used, or
 * while 64 others wait in this context. Without it a context finds out by itself whether its buffers are shared.
 *
 * Memory that was freed is there again when its pages have been given back. Whoever meets a full pool, or a limit of
 * bytes or buffers, waits for what is on its way back, also with wait_ms 0, as long as that may do.
 *
 *     -EINVAL      size 0, or an option out of range, or a bad name
 *     -EOVERFLOW   size cannot be rounded up to the granule
 *     -EFBIG       the pool could never hold that much
 *     -ENODEV      no pool has this name, node and page size
 *     -ENXIO       no such node, or it has no memory
 *     -ENOMEM      no room now (POOL_FULL), the kernel had none (NO_MEMORY), or could not place it (MISPLACED)
 *     -ETIMEDOUT   no room came free within wait_ms
 *     -EEXIST      the name is bound already
 *     -EADDRNOTAVAIL, -EADDRINUSE   no free range in the arena, or the wanted one is taken
 *     -ENFILE      the broker has no descriptor left
 *     -EOPNOTSUPP  the pool cannot do what a flag or the placement asks
 */
MEMCLIENT_API int memclient_alloc(struct memclient *ctx, uint64_t size, const struct memclient_alloc_options *options,
                                  struct memclient_buffer **buf);

/* Makes n buffers of one kind, 1 to MEMCLIENT_BATCH_MAX, all or none. sizes[i] is that of bufs[i]. */
MEMCLIENT_API int memclient_alloc_many(struct memclient *ctx, size_t n, const uint64_t *sizes,
                                       const struct memclient_alloc_options *options, struct memclient_buffer **bufs);

/* Counts the handle up and returns it. NULL gives NULL. Makes no call. */
MEMCLIENT_API struct memclient_buffer *memclient_buffer_ref(struct memclient_buffer *buf);

/*
 * Counts the handle down. Each mapping of the buffer counts too; when the last is gone, this process's claim on the
 * buffer is given up, and the handle is freed. Accepts NULL, returns NULL. Never fails; errno is unchanged.
 *
 * The broker is told, and not waited for: what this context calls next finds the claim gone, and the memory on its way
 * back; another session may see it for a moment longer. (The end of memclient_claim_name()'s claims is waited for.)
 */
MEMCLIENT_API struct memclient_buffer *memclient_buffer_unref(struct memclient_buffer *buf);

/*
 * The same for n handles, any n, of which some may be NULL or the same one. The broker is told together of those whose
 * claims end by it, MEMCLIENT_BATCH_MAX at once.
 */
MEMCLIENT_API void memclient_buffer_unref_many(size_t n, struct memclient_buffer *const *bufs);

/*
 * For those who make allocators of this library. A buffer that a program gives back, and will soon want again, costs
 * two requests and its mapping each time. memclient_cache_put() keeps all of that: the caller keeps the handle, and its
 * mapping, and uses neither until memclient_cache_take(). Meanwhile the broker may give the memory to others without
 * asking this process, be it idle for hours: when somebody finds no room or meets a limit, when all others that had the
 * buffer have let go of it, when somebody opens it by its name or number. Then taking it is -ESTALE, and all that can
 * be done with the handle is to unmap what is mapped of it, which reads zeros, and to give it up. What is taken back in
 * time is as it was, contents and all; so it is for those who have seen them, this process.
 *
 * The handle must have no other user and at most one mapping, and nobody else may be able to have the memory: nothing
 * of it was shared or exported, no name is bound to it but one that ends with the session, it cannot be published, and
 * the process has not forked since. A buffer that was opened may be held by others. A fork does not copy what is kept.
 *
 * A process keeps 64 buffers and 64 MiB at most, or as many MiB as the environment's MEMORYD_CACHE says, if that is
 * less; 0 = nothing. memclient_buffer_info() shows it: holder_cached.
 *
 * memclient_cache_put():
 *     -EBUSY       others have it, or may have it
 *     -ENOSPC      there is no room: give up another one first
 *     -E2BIG       it is larger than all that is kept
 *     -EAGAIN      others need memory, or others have had the buffer meanwhile: give it up
 *     -EALREADY    it is kept
 *     -EOPNOTSUPP  nothing is kept: by MEMORYD_CACHE, or because of an older broker
 * memclient_cache_take():
 *     -ESTALE      the memory is others', or another part of this process has opened it
 * memclient_cache_is_lost() is 1 if that would be so, else 0. None of the three makes a call to the broker.
 */
MEMCLIENT_API int memclient_cache_put(struct memclient_buffer *buf);
MEMCLIENT_API int memclient_cache_take(struct memclient_buffer *buf);
MEMCLIENT_API int memclient_cache_is_lost(struct memclient_buffer *buf);

/* Properties that the handle knows. `buf` is not NULL. They make no call. */
MEMCLIENT_API uint64_t memclient_buffer_id(const struct memclient_buffer *buf);
MEMCLIENT_API uint64_t memclient_buffer_size(const struct memclient_buffer *buf);    /* as asked for */
MEMCLIENT_API uint64_t memclient_buffer_bytes(const struct memclient_buffer *buf);   /* rounded up to the granule */
MEMCLIENT_API uint64_t memclient_buffer_granule(const struct memclient_buffer *buf); /* unit of offsets and lengths */
MEMCLIENT_API unsigned memclient_buffer_rights(const struct memclient_buffer *buf);  /* enum memclient_right */
MEMCLIENT_API unsigned memclient_buffer_flags(const struct memclient_buffer *buf);   /* as last seen */
/* The home, or NULL: where memclient_map() puts it, and where other processes find it. Not: whether it is mapped. */
MEMCLIENT_API void *memclient_buffer_address(const struct memclient_buffer *buf);
/* The context the handle belongs to. */
MEMCLIENT_API struct memclient *memclient_buffer_context(const struct memclient_buffer *buf);

struct memclient_buffer_info {
    size_t size;
    uint64_t id;
    unsigned state;             /* enum memclient_buffer_state */
    unsigned flags;             /* enum memclient_buffer_flag */
    uint64_t length;            /* as asked for */
    uint64_t bytes;             /* committed and charged */
    char pool[MEMCLIENT_POOL_NAME_SIZE];
    unsigned pages;             /* enum memclient_pages */
    unsigned placement;         /* enum memclient_placement */
    uint64_t page_size;
    uint64_t huge_bytes;        /* of MEMCLIENT_PAGES_THP: what was really backed with huge pages at commit */
    uint32_t uid;               /* who made it */
    uint32_t charged_uid;       /* who pays for it */
    int32_t pid;                /* of the maker */
    uint32_t holds;             /* sessions with a claim */
    uint32_t names;
    uint32_t tokens;
    uint64_t inode;
    uint64_t address;           /* home, 0 = none */
    uint64_t created_ms;        /* wall clock, since 1970 */
    uint64_t detached_ms;       /* likewise; 0 unless detached */
    char name[MEMCLIENT_NAME_SIZE]; /* one of its names, or "" */
    uint32_t n_nodes;           /* where its pages are charged, and how much of it */
    uint32_t nodes[64];
    uint64_t node_bytes[64];
    uint32_t n_holders;         /* the first sessions that hold it, and with which rights */
    uint32_t holder_rights[16];
    uint64_t holders[16];
    uint32_t holder_claims[16]; /* enum memclient_claim of each of them */
    uint32_t holder_cached[16]; /* 1: its program has given it back, and it is kept: memclient_cache_put() */
};
#define MEMCLIENT_BUFFER_INFO_INIT MEMCLIENT_SIZED(struct memclient_buffer_info)

/* GCC's -Wshadow says of a function in C++ that it hides the struct that it is named as. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/* All that the broker knows of a buffer, now. */
MEMCLIENT_API int memclient_buffer_info(struct memclient_buffer *buf, struct memclient_buffer_info *info);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ------------------------------------------------------------------------------------------------------- sharing */

/*
 * A descriptor of the buffer, the *shareable handle*: whoever gets it, by whatever way, may map it, or import it.
 * It keeps the contents alive. rights is MEMCLIENT_READ (O_RDONLY) or MEMCLIENT_READ|MEMCLIENT_WRITE (O_RDWR); 0
 * = as much as the handle has. It is close-on-exec and the caller's to close.
 *     -EACCES   the handle lacks that right
 *     -EROFS    published: nobody gets a writable one any more
 */
MEMCLIENT_API int memclient_export_fd(struct memclient_buffer *buf, unsigned rights, int *fd);

/*
 * Opens the buffer behind a shareable handle. The descriptor stays the caller's, on success as well; the library keeps
 * a duplicate, for mapping. Gives READ, WRITE if the descriptor is open for writing, and SHARE.
 *     -EREMOTE   it is no descriptor of a buffer of this broker
 *     -EBADF     it is no open descriptor
 *     -EBUSY     its last claim went a moment ago, and more than a thousand tokens with it: try again
 */
MEMCLIENT_API int memclient_import_fd(struct memclient *ctx, int fd, struct memclient_buffer **buf);

/*
 * Makes a *foreign* buffer: of memory that neither this library nor the broker made, a device's say, whose descriptor
 * is `fd`. The broker keeps a duplicate of it; the caller's own stays the caller's. It may be of a dma-buf, or of a
 * file of shared memory or huge pages (memfd, tmpfs) that is no buffer of this broker. From then on it is a buffer as
 * others are: it has an id, rights, names and tokens, it is listed and counted, and it outlives this process and the
 * broker's deaths as far as those keep it. What is different, since its memory is not the broker's:
 *
 *   - It is not sealed, so it may be cut or changed by whoever made it: touching it may raise SIGBUS. Whoever opens
 *     it, by token, name or id, says that this is understood by adding MEMCLIENT_ACCEPT_FOREIGN to the rights that are
 *     asked for; without that opening it is -EOPNOTSUPP. Its flag is MEMCLIENT_BUFFER_FOREIGN.
 *   - This library does not map it (-EOPNOTSUPP). memclient_export_fd() gives a duplicate of the descriptor, which has
 *     the access that `fd` has, and its file offset. It has no other: what asks for less, or more, is -EACCES. So let
 *     tokens and names grant READ and WRITE, or READ if `fd` is open for reading only. (Of a dma-buf that is what a
 *     processor may do. What a device may do is between its drivers.) A file that its mode lets others write, as it
 *     does a new memfd's, they can open anew through /proc and write all the same: see fchmod(2).
 *   - It has no pool, no home, and no bytes that are charged. It cannot be published, discarded or moved (-EOPNOTSUPP),
 *     nor imported (-EREMOTE), and a child made by fork() opens it anew.
 *   - Nobody can tell who still has it open. With its last claim, name and keeping token it is gone from the broker at
 *     once; the memory lives as long as others have it.
 *
 * Adopting the same memory twice gives two buffers.
 *     -EOPNOTSUPP  the descriptor is of something else: a socket, a device, a file of a disk
 *     -EINVAL      it is not open for reading, its size is 0, or it is of a buffer of this broker, to be imported
 *     -EBADF       it is no open descriptor
 *     -EDQUOT      this user or session has as many buffers as the broker's limits allow
 *     -ENFILE      the broker has no descriptor left
 */
MEMCLIENT_API int memclient_adopt_fd(struct memclient *ctx, int fd, struct memclient_buffer **buf);

/* What lets its bearer open a buffer. Opaque: compare, copy and send the bytes. */
struct memclient_token {
    uint8_t bytes[32];
};

enum memclient_share_flag {
    MEMCLIENT_TOKEN_KEEPING = 1,  /* keeps the buffer alive until used up, expired or revoked; needs uses or expiry */
    MEMCLIENT_TOKEN_ONLY_UID = 2, /* only this user may use it */
    MEMCLIENT_TOKEN_ONLY_GID = 4, /* only members of this group */
    MEMCLIENT_TOKEN_ONLY_PID = 8  /* only this very process, and no later one with its number */
};

struct memclient_share_options {
    size_t size;
    unsigned rights;    /* what it grants; 0 = READ, and WRITE if the handle has it */
    unsigned flags;     /* enum memclient_share_flag */
    uint32_t uses;      /* how often it may be opened; 0 = any number of times */
    uint64_t expiry_ms; /* from now; 0 = never */
    uid_t uid;
    gid_t gid;
    pid_t pid;
};
#define MEMCLIENT_SHARE_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_share_options)

/*
 * Makes a token. It keeps nothing alive, unless MEMCLIENT_TOKEN_KEEPING. In a program that shares what it allocates the
 * library has tokens of default terms come along with the buffers; then this makes no call. They are tokens from then
 * on, which listings show and whoever may can revoke, before they are given out.
 *     -EACCES   the handle lacks SHARE, or a right that is to be granted
 */
MEMCLIENT_API int memclient_share(struct memclient_buffer *buf, const struct memclient_share_options *options,
                                  struct memclient_token *token);

/*
 * Makes one token for each of n buffers (of the same context), with the same terms; any n. results[i] is 0 or a
 * negative errno and tokens[i] is written where it is 0. Returns 0 when all that was asked could be tried.
 */
MEMCLIENT_API int memclient_share_many(size_t n, struct memclient_buffer *const *bufs,
                                       const struct memclient_share_options *options, struct memclient_token *tokens,
                                       int *results);

/*
 * Opens the buffer of a token. rights asks for a subset of what it grants; 0 = all of it.
 *     -EBADMSG      these bytes are no token
 *     -EREMOTE      a token of another broker
 *     -ESTALE       its buffer has ended
 *     -EKEYEXPIRED  it was used as often as it may be, or its time is over
 *     -EKEYREVOKED  it was revoked
 *     -EKEYREJECTED its secret is wrong
 *     -EACCES       it is for another user, group or process, or does not grant these rights
 *     -EROFS        WRITE was asked for and the buffer is published
 *     -EOPNOTSUPP   it is a foreign buffer, and rights lack MEMCLIENT_ACCEPT_FOREIGN
 */
MEMCLIENT_API int memclient_open_token(struct memclient *ctx, const struct memclient_token *token, unsigned rights,
                                       struct memclient_buffer **buf);

/*
 * Opens many; any n. results[i] is 0 or a negative errno; bufs[i] is a handle where it is 0, else NULL. Returns 0 when
 * all could be tried, else a negative errno, and then nothing was opened.
 */
MEMCLIENT_API int memclient_open_tokens(struct memclient *ctx, size_t n, const struct memclient_token *tokens,
                                        unsigned rights, struct memclient_buffer **bufs, int *results);

/* Revokes a token. What was opened with it stays open. Errors: those of a token, above. */
MEMCLIENT_API int memclient_revoke(struct memclient *ctx, const struct memclient_token *token);

/* Revokes a token by its serial number, as listings show it: for its maker, holders of MANAGE, administrators. */
MEMCLIENT_API int memclient_revoke_serial(struct memclient *ctx, uint64_t serial);

/* Revokes all tokens of a buffer; needs MANAGE (-EACCES). */
MEMCLIENT_API int memclient_revoke_all(struct memclient_buffer *buf);

/* A token's text: 64 lower-case hexadecimal digits and a NUL. */
MEMCLIENT_API void memclient_token_format(const struct memclient_token *token, char text[MEMCLIENT_TOKEN_TEXT + 1]);

/* Reads such a text, in either case; anything else: -EBADMSG. Makes no call. */
MEMCLIENT_API int memclient_token_parse(const char *text, struct memclient_token *token);

/* ---------------------------------------------------------------------------------------- publish, discard, move */

enum memclient_publish_flag {
    /* Forbid only new writable mappings and writes; those that exist go on. memclient_buffer_info() says so. */
    MEMCLIENT_PUBLISH_FUTURE_ONLY = 1
};

/*
 * Makes a buffer immutable for good, for everybody. Needs MANAGE, and MEMCLIENT_PUBLISHABLE at allocation.
 * This process's own writable mappings of it are made read-only first (a thread that writes meanwhile gets SIGSEGV),
 * and are put back if the broker refuses.
 *     -EACCES      no MANAGE
 *     -EBUSY       somebody else has it mapped for writing; the sentence names sessions that may have
 *     -EROFS       it is published already
 *     -EOPNOTSUPP  it was not made publishable
 */
MEMCLIENT_API int memclient_publish(struct memclient_buffer *buf, unsigned flags);

/*
 * Gives the pages of a range back to the system; they read as zeros afterwards, in every process, and stay charged.
 * Needs WRITE and MANAGE. offset and length are multiples of the granule; length 0 = to the end.
 *     -EACCES      a right is missing
 *     -EROFS       it is published
 *     -EOPNOTSUPP  it is of huge pages of the system
 *     -EOVERFLOW   beyond the buffer's end
 */
MEMCLIENT_API int memclient_discard(struct memclient_buffer *buf, uint64_t offset, uint64_t length);

/*
 * Moves all pages of a buffer to one NUMA node, and its charge with them; from then on it is bound to that node. The
 * contents stay, and so do descriptors, addresses and mappings, in every process. Needs MANAGE. A published buffer may
 * be moved. One that is there already is left alone.
 *
 * The kernel moves no page that another process has in its page tables. This process's own mappings are no obstacle as
 * long as no thread touches them meanwhile and they are not locked in memory (mlock(2)); another process's are, once it
 * has touched them, or has mapped for writing no more than 64 KiB or what it has allocated, until it unmaps them or
 * gives them MADV_DONTNEED, which drops nothing of a shared buffer.
 *     -EACCES      no MANAGE
 *     -ENXIO       there is no such node, or it has no memory
 *     -ENODEV      that node has no pool of such pages
 *     -ENOMEM      the node's budget has no room for it, nor when all that is on its way back will be there (which is
 *                  waited for), or the node no memory
 *     -EBUSY       somebody else has some of its pages mapped (the sentence names the sessions that hold it), or it is
 *                  being moved already
 *     -EOPNOTSUPP  it is of huge pages of the system, or of a lazy pool
 * On failure it is charged where it was, and its pages are there again. Those that had gone already and cannot come
 * back, because somebody has begun to use them or that node's memory was given away, stay where they are; then
 * MEMCLIENT_BUFFER_VERIFIED is taken from the buffer's info.
 */
MEMCLIENT_API int memclient_move(struct memclient_buffer *buf, uint32_t node);

/* --------------------------------------------------------------------------------------------------------- names */

/*
 * Names are per user: "a/b" is one's own, "uid:1000/a/b" another user's. 1-255 bytes of UTF-8 without control
 * characters, parts between slashes neither empty nor "." nor "..".
 *
 * Binds a name; it keeps the buffer alive. Needs MANAGE.
 *     -EEXIST   it is bound already
 *     -EACCES   no MANAGE
 */
MEMCLIENT_API int memclient_name_bind(struct memclient_buffer *buf, const char *name,
                                      const struct memclient_name_options *options);

/* Opens by name; rights 0 = all that the caller may have. -ENOENT: not bound. -EACCES: not for the caller. */
MEMCLIENT_API int memclient_open_name(struct memclient *ctx, const char *name, unsigned rights,
                                      struct memclient_buffer **buf);

/* How sessions keep each other out of a named buffer. */
enum memclient_claim {
    MEMCLIENT_CLAIM_NONE = 0,
    MEMCLIENT_CLAIM_SHARED = 1,   /* with others, while nobody has an exclusive one */
    MEMCLIENT_CLAIM_EXCLUSIVE = 2 /* alone */
};

/*
 * Opens by name as memclient_open_name() does, and claims the buffer for this session, as one locks a file. A claim
 * keeps out claims of other sessions and nothing else: who opens the buffer without one is not asked. So it is for
 * programs that agree on it: one that writes and others that read, or one that runs while another waits to take over.
 *
 * The claim lasts until the handle is freed (see memclient_buffer_unref()), or the session ends with its process, and
 * never destroys anything; a lost connection or a restart of the broker do not end it. Claiming again is allowed, and
 * makes a shared claim exclusive if nobody else has one; an exclusive one is not made shared. A child made by fork()
 * has no claim.
 *     -EBUSY    another session's claim forbids it; the sentence names that session and its process
 *     -EACCES   an exclusive claim needs that the name grants WRITE, whatever rights are asked for
 */
MEMCLIENT_API int memclient_claim_name(struct memclient *ctx, const char *name, unsigned rights, unsigned claim,
                                       struct memclient_buffer **buf);

/* Opens by id, for the buffer's owner and administrators. -ENOENT: never given out. -ESTALE: ended. */
MEMCLIENT_API int memclient_open_id(struct memclient *ctx, uint64_t id, unsigned rights, struct memclient_buffer **buf);

/* Unbinds. -ENOENT: not bound. -EACCES: another user's. */
MEMCLIENT_API int memclient_name_unbind(struct memclient *ctx, const char *name);

/*
 * Ends a buffer's life at once, whoever holds it: its names, tokens and claims go. For its owner and administrators.
 * Who has it mapped keeps the contents, unless an administrator says `force`: then they read zeros.
 *     -ENOENT, -ESTALE, -EACCES, -EPERM
 */
MEMCLIENT_API int memclient_destroy(struct memclient *ctx, uint64_t id, bool force);

/* ------------------------------------------------------------------------------------ addresses and mappings */

/*
 * Reserves `size` bytes of addresses (a multiple of the base page) for this session, on the whole host, and in this
 * process, where the range is inaccessible until something is mapped in it. alignment is a power of two, 0 = the base
 * page; address is a wish, 0 = anywhere in the arena.
 *     -EADDRNOTAVAIL  the arena has no such free range
 *     -EADDRINUSE     the wanted range is taken, on the host or in this process
 */
MEMCLIENT_API int memclient_reserve(struct memclient *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                                    struct memclient_reservation **res);

/*
 * Reserves addresses of this process only, likewise: for aliases and growing arrays that no other process need find at
 * the same place, of any size that the kernel has addresses for. In the arena only if `address` is there: homes in the
 * range cannot be mapped as such while it lasts, but other processes' buffers can be mapped where those have them. A
 * buffer that is mapped in it gets no home by it. Nothing is committed. Makes no call.
 *     -ENOMEM      the kernel has no such range
 *     -EADDRINUSE  the wanted range is taken in this process, or none that the kernel gives out
 */
MEMCLIENT_API int memclient_reserve_private(struct memclient *ctx, uint64_t size, uint64_t alignment, uint64_t address,
                                            struct memclient_reservation **res);

/* They make no call. */
MEMCLIENT_API void *memclient_reservation_address(const struct memclient_reservation *res);
MEMCLIENT_API uint64_t memclient_reservation_size(const struct memclient_reservation *res);

/*
 * Gives it back and frees `res`. NULL is ignored. -EBUSY: something was mapped in it by its address, and is still
 * (nothing is done then); what was mapped at home stays there. Homes of buffers that were placed in it stay taken until
 * those end. The broker is told and not waited for, as by
 * memclient_buffer_unref().
 */
MEMCLIENT_API int memclient_reservation_release(struct memclient_reservation *res);

/* Access of a mapping: 0 = what the rights and the buffer allow, MEMCLIENT_READ, MEMCLIENT_READ|MEMCLIENT_WRITE, or */
#define MEMCLIENT_NO_ACCESS 256

enum memclient_map_flag {
    MEMCLIENT_MAP_ANYWHERE = 1,     /* where home is not possible, another address is as good */
    MEMCLIENT_MAP_NOT_HOME = 2,     /* another address, without trying home; with `address`, making no home there */
    MEMCLIENT_MAP_UNRESERVED = 4,   /* `address` is outside of all reservations of this process */
    MEMCLIENT_MAP_ALONE = 8,        /* not where the same bytes are mapped already */
    MEMCLIENT_MAP_OWN_IN_CHILD = 16, /* children made by fork() get a copy of their own, see below */
    MEMCLIENT_MAP_SPARSE = 32        /* little of it will be touched: pages come as that happens, see below */
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
 * Maps a buffer, or a part of it; *address gets where. A mapping counts as a reference of the handle.
 *
 * At home (the default), every process that maps it so sees it at the same address. In a reservation the range
 * must have nothing else mapped yet; a buffer may be mapped any number of times, and in parts. The first
 * such mapping of a buffer that has no home makes its home there, by a call, if the handle has MANAGE, no other buffer
 * has its, the reservation is not of this process only, and neither MEMCLIENT_MAP_NOT_HOME nor _UNRESERVED is asked
 * for.
 *
 * Where bytes of the buffer are to be mapped that are mapped just there already, by whatever handle or context of this
 * process, all of them or some, the mapping shares these pages: they are there once, come with the first mapping and go
 * with the last, in whichever order those are unmapped, and meanwhile allow what any of them wants. So a mapping for
 * reading does not keep this process from writing where another is for writing, and becomes writable by that; where
 * that has gone, the kernel refuses writing again. (With MEMCLIENT_MAP_ALONE it is refused, or elsewhere.)
 *
 * A child made by fork() shares what is mapped with its parent; with MEMCLIENT_MAP_OWN_IN_CHILD it gets a copy, as of
 * malloc()'s memory: what it writes there nobody else sees. (Of a page that it has not written it may see what the
 * parent writes.) The copy is not the buffer: memclient_query_address() says so, nothing shares its pages, and what
 * others are to have must be allocated in the child. Pages that a mapping without this flag shows as well stay shared.
 * Where the child gets no memory for it, all do. For this a descriptor is kept open of each such buffer of 256 KiB and
 * more, 256 or a quarter of RLIMIT_NOFILE at most; the others are copied at each fork().
 *
 * What is mapped for writing, and no larger than 64 KiB, gets its pages into the page tables at once, so that writing
 * does not fault page by page. So does what this process has allocated, the first GiB of it, when it is first mapped
 * for writing: then allocating it and writing all of it takes together about what the first write of malloc()'s memory
 * does. This mapping takes up to 0.3 ms for a MiB of base pages, much less where they come from stock, and 8 bytes of
 * page tables for a page; MEMCLIENT_MAP_SPARSE spares both. Other pages come as they are touched, and reading one
 * brings those around it.
 * No call is made while the library has a descriptor of the buffer at hand (it keeps those used last), nor while all
 * pages are there already, nor while a mapping of this handle elsewhere shows the first byte that is to be mapped; with
 * as much access in each case; huge pages of hugetlb pools need the descriptor.
 *
 *     -EADDRINUSE     something else of this process is there already
 *     -EADDRNOTAVAIL  the buffer has no home, or `address` and length are not inside one reservation, and
 *                     MEMCLIENT_MAP_UNRESERVED is not asked for
 *     -EOVERFLOW      offset and length go beyond the buffer's end
 *     -EACCES         writing was asked for and the handle may only read
 *     -EROFS          writing was asked for and the buffer is published
 *     -EBUSY          it is just being published, here or elsewhere
 *     -ENOMEM         too many mappings: 15 of 16 that the process may have (vm.max_map_count) are for buffers at
 *                     most; or the kernel refuses, by RLIMIT_AS for one
 */
MEMCLIENT_API int memclient_map(struct memclient_buffer *buf, const struct memclient_map_options *options,
                                void **address);

/*
 * Maps n buffers, 1 to MEMCLIENT_BATCH_MAX, all or none. options[i] and addresses[i] are those of bufs[i]; all options
 * are of the same size; NULL = defaults for all. Those that no descriptor is at hand for share one call.
 */
MEMCLIENT_API int memclient_map_many(size_t n, struct memclient_buffer *const *bufs,
                                     const struct memclient_map_options *options, void **addresses);

/*
 * Makes the home of a buffer that was mapped without one (MEMCLIENT_MAP_NOT_HOME): where it is mapped for the longest
 * time, so that those who open it from now on find it at the same address. For memory that is laid out first and shared
 * later, or never. Needs MANAGE. One call; none if it has a home already.
 *     -EADDRNOTAVAIL  it is not mapped in a reservation of this session that holds all of it, or another buffer has
 *                     its home there, or the handle lacks MANAGE
 */
MEMCLIENT_API int memclient_make_home(struct memclient_buffer *buf);

/*
 * Changes the access of [address, address + length): parts of mappings, or runs of several without a gap. length 0 =
 * the mapping that starts at `address`, of several the shortest. Of several mappings that share pages the call is about
 * the one that has just this range, of several of those about the one that wants least; what the others want stays
 * allowed. Makes no call.
 *     -EFAULT   a part of it is no mapping of this context; nothing is changed
 *     -EINVAL   not in multiples of the granule
 *     -EACCES   it was mapped for reading only
 */
MEMCLIENT_API int memclient_protect(struct memclient *ctx, void *address, uint64_t length, unsigned access);

/*
 * Unmaps [address, address + length), likewise; pages that other mappings share stay. What lies in a reservation is
 * reserved as before. Makes no call; where that was the last reference of a buffer, its claim is given up as by
 * memclient_buffer_unref_many(). Errors: -EFAULT, -EINVAL as above.
 */
MEMCLIENT_API int memclient_unmap(struct memclient *ctx, void *address, uint64_t length);

/*
 * Children made by fork() do not get [address, address + length), likewise; pages that other mappings share they do.
 * Makes no call.
 */
MEMCLIENT_API int memclient_fork_dont_copy(struct memclient *ctx, void *address, uint64_t length);

struct memclient_address_info {
    size_t size;
    struct memclient *context;        /* whose it is */
    void *address;                    /* start of the mapping, or of the reservation where nothing is mapped; of
                                         several mappings the one that reaches furthest is told of */
    uint64_t length;                  /* likewise */
    struct memclient_buffer *buffer;  /* what is mapped there, or NULL, also of a child's copy; see below */
    uint64_t buffer_id;               /* or 0 */
    uint64_t offset;                  /* in the buffer, of the address asked for */
    unsigned access;                  /* MEMCLIENT_READ, MEMCLIENT_READ|MEMCLIENT_WRITE, MEMCLIENT_NO_ACCESS */
    struct memclient_reservation *reservation; /* which it is in, or NULL */
    bool process_private;             /* that is one of memclient_reserve_private() */
};
#define MEMCLIENT_ADDRESS_INFO_INIT MEMCLIENT_SIZED(struct memclient_address_info)

/*
 * What is at an address: any address within a mapping or reservation of any context of this process. The objects in
 * the answer are not counted up: take a reference of the buffer before anything may unmap it. Makes no call.
 *     -EFAULT   nothing of this library is there
 */
MEMCLIENT_API int memclient_query_address(const void *address, struct memclient_address_info *info);

/* -------------------------------------------------------------------------------------------------------- events */

/* A bit mask for memclient_subscribe(). */
enum memclient_event_kind {
    MEMCLIENT_EVENT_PRESSURE = 1,  /* a pool filled up or emptied */
    MEMCLIENT_EVENT_DISCARDED = 2, /* another holder discarded part of a buffer that this session holds */
    MEMCLIENT_EVENT_NAME = 4,      /* a name was bound or unbound */
    MEMCLIENT_EVENT_SHUTDOWN = 8,  /* the broker stops; nothing is freed */
    /* More happened than was kept, or the connection was lost: look again, which also connects again; until a call
     * has done so no other event comes. Comes to every subscriber. */
    MEMCLIENT_EVENT_LOST = 16
};

struct memclient_event {
    size_t size;
    unsigned kind;                  /* one of enum memclient_event_kind */
    unsigned level;                 /* PRESSURE: 0 = below 85 % used, 1 = above it, 2 = above 95 % */
    uint64_t buffer;                /* DISCARDED, NAME: the buffer's id */
    bool bound;                     /* NAME: bound, else unbound */
    char pool[MEMCLIENT_POOL_NAME_SIZE]; /* PRESSURE */
    char name[MEMCLIENT_NAME_SIZE];      /* NAME; with "uid:N/" before it where it is another user's */
};
#define MEMCLIENT_EVENT_INIT MEMCLIENT_SIZED(struct memclient_event)

/* Chooses the events this session gets; replaces the former choice. 0 = none. */
MEMCLIENT_API int memclient_subscribe(struct memclient *ctx, unsigned mask);

/*
 * A descriptor that polls readable when memclient_next_event() should be called; it may also do so for nothing. The
 * library's: do not read or close it. In a child made by fork(), ask again.
 */
MEMCLIENT_API int memclient_event_fd(struct memclient *ctx, int *fd);

/* Takes the next event; never blocks. -EAGAIN: there is none now. Events are hints, and few are kept: EVENT_LOST. */
MEMCLIENT_API int memclient_next_event(struct memclient *ctx, struct memclient_event *event);

/* ------------------------------------------------------------------------------------------ status and listings */

struct memclient_broker_status {
    size_t size;
    char version[64];    /* of the broker program */
    uint32_t broker_id;
    int32_t broker_pid;
    uint32_t broker_uid;
    bool simulated;      /* NUMA nodes are simulated ones */
    uint64_t uptime_ms;
    uint64_t sessions;
    uint64_t buffers;          /* live */
    uint64_t buffers_detached; /* MEMCLIENT_STATE_DETACHED, as many as there are in listings of everybody's */
    uint64_t bytes;            /* committed, all of them */
    uint64_t names;
    uint64_t tokens;
    uint64_t reservations;
    uint64_t fds;              /* open in the broker */
    uint64_t fds_limit;
    uint64_t requests;         /* served since its start */
    uint64_t refused;          /* of those */
    uint64_t arena_base;
    uint64_t arena_size;
    char config[256];          /* the configuration file, "" if none */
    int32_t keeper_pid;        /* the broker's parent, which starts the next one */
    uint32_t restarts;         /* brokers before this one, of which it knows what they left */
    uint64_t quarantined;      /* records of theirs that made no sense, and that nobody uses */
    uint64_t buffers_ending;   /* whose pages are being given back; a broker of 0.1 counts them as detached */
    bool config_stale;         /* the file had mistakes when it was read last: in force is what it said before */
};
#define MEMCLIENT_BROKER_STATUS_INIT MEMCLIENT_SIZED(struct memclient_broker_status)

/* What the broker is, holds and has done. */
MEMCLIENT_API int memclient_status(struct memclient *ctx, struct memclient_broker_status *status);

/*
 * Listings call `fn` once an item. The item, and all it points to, is valid during that call. A non-zero return ends
 * the listing and is returned. `fn` may use the library. What is made or ended meanwhile may or may not be seen;
 * nothing is seen twice. One sees the items of one's own user, and of everybody as an administrator (the broker's user,
 * or root).
 */
struct memclient_node {
    size_t size;
    uint32_t node;
    uint32_t physical;   /* the kernel's number; another one only where nodes are simulated */
    uint64_t total;      /* the node's memory */
    uint64_t capacity;   /* how much of it buffers of base pages may have together */
    uint64_t used;       /* of that */
    bool has_cpus;
    bool simulated;
    size_t n_distances;  /* to nodes 0, 1, ...; 10 = local */
    const uint32_t *distances;
};
/* The nodes of memory. */
MEMCLIENT_API int memclient_list_nodes(struct memclient *ctx, int (*fn)(const struct memclient_node *node, void *data),
                                       void *data);

struct memclient_pool {
    size_t size;
    const char *name;
    size_t n_nodes;
    const uint32_t *nodes;
    unsigned pages;      /* enum memclient_pages */
    unsigned placement;  /* enum memclient_placement */
    uint64_t page_size;
    uint64_t granule;
    uint64_t part_size;
    size_t n_weights;
    const uint32_t *weights;
    bool lazy;           /* pages are allocated on first touch: SIGBUS is possible */
    bool simulated;
    uint64_t capacity;
    uint64_t used;
    uint64_t available;  /* what this caller could allocate now in one piece, see below */
    uint64_t buffers;
    bool declared;       /* by the configuration, not made by itself */
    uint64_t stock;      /* made ahead for allocations to come, not in `used`, and given back when there is need */
    uint64_t stock_buffers; /* in how many buffers */
    uint64_t stock_ready; /* bytes of `stock` whose making has ended */
};
/*
 * The pools that this user may allocate from. `available` is what the pool and its nodes have left, as far as the
 * limits uid_bytes and session_bytes let this session have it. It is exact: memory that is on its way back counts,
 * since an allocation waits for it, so it is there as soon as this session has freed it, or another one's release has
 * arrived; what somebody still has mapped or open does not.
 */
MEMCLIENT_API int memclient_list_pools(struct memclient *ctx, int (*fn)(const struct memclient_pool *pool, void *data),
                                       void *data);

/* The buffers, those that are committing or detached included. */
MEMCLIENT_API int memclient_list_buffers(struct memclient *ctx,
                                         int (*fn)(const struct memclient_buffer_info *info, void *data), void *data);

struct memclient_session {
    size_t size;
    uint64_t id;
    uint32_t uid;
    uint32_t gid;
    int32_t pid;
    const char *program; /* what the client calls itself */
    bool connected;
    uint64_t created_ms; /* wall clock, since 1970 */
    uint64_t bytes;      /* committed bytes of the buffers it holds and pays for */
    uint32_t holds;
    uint32_t tokens;
    uint32_t reservations;
    uint32_t fds_in_flight;
    uint32_t queued_bytes;
};
/* The sessions, connected or in their grace. */
MEMCLIENT_API int memclient_list_sessions(struct memclient *ctx,
                                          int (*fn)(const struct memclient_session *session, void *data), void *data);

struct memclient_reservation_info {
    size_t size;
    uint64_t id;
    uint64_t session; /* 0 = it is kept by the buffers placed in it */
    uint64_t address;
    uint64_t length;
    uint32_t buffers; /* placed in it */
    uint32_t uid;
};
/* The ranges of the arena that are taken. */
MEMCLIENT_API int memclient_list_reservations(struct memclient *ctx,
                                              int (*fn)(const struct memclient_reservation_info *info, void *data),
                                              void *data);

struct memclient_name {
    size_t size;
    const char *name;
    uint32_t uid;
    uint64_t buffer;
    unsigned policy;       /* enum memclient_name_policy */
    uint64_t keep_ms;
    unsigned group_rights;
    uint32_t gid;
    unsigned other_rights;
    uint64_t session;      /* that bound it, 0 once that has ended */
};
/* The names, and what happens to their buffers at the end. */
MEMCLIENT_API int memclient_list_names(struct memclient *ctx, int (*fn)(const struct memclient_name *name, void *data),
                                       void *data);

struct memclient_token_info {
    size_t size;
    uint64_t serial;
    uint64_t buffer;
    unsigned rights;
    unsigned flags;       /* enum memclient_share_flag */
    uint32_t uid;
    uint32_t gid;
    int32_t pid;
    uint32_t uses_left;   /* 0 = any number */
    uint64_t expires_ms;  /* from now; 0 = never */
    uint32_t maker_uid;
    uint64_t session;     /* that made it, 0 once that has ended */
};
/* The tokens that may still be used. Their secrets are not told. */
MEMCLIENT_API int memclient_list_tokens(struct memclient *ctx,
                                        int (*fn)(const struct memclient_token_info *token, void *data), void *data);

struct memclient_check_result {
    size_t size;
    uint64_t buffers;        /* examined */
    uint64_t records;        /* of all kinds */
    uint32_t faults;         /* sums that do not agree: 0 on a healthy broker */
    uint32_t n_sentences;    /* about the first of them, and about records in quarantine, which are no fault */
    char sentences[16][256];
};
#define MEMCLIENT_CHECK_RESULT_INIT MEMCLIENT_SIZED(struct memclient_check_result)

/* Has the broker prove its accounts against its records. For administrators (-EPERM). */
MEMCLIENT_API int memclient_check(struct memclient *ctx, struct memclient_check_result *result);

/*
 * Has the broker's program that is installed now started in place of the one that runs, with everything that it holds.
 * Sessions, handles and mappings go on, and calls meanwhile just take longer. Returns when it is known that the program
 * runs, and the broker begins to stop; memclient_status() tells of another broker_pid when it is done. For
 * administrators.
 *     -EPERM       the caller is none
 *     -EOPNOTSUPP  the program cannot be started, or finds mistakes in the configuration, and the one that runs goes
 *                  on; or nothing outlives this broker
 */
MEMCLIENT_API int memclient_upgrade(struct memclient *ctx);

enum memclient_reload_what {
    MEMCLIENT_RELOAD_APPLIED = 1, /* a key whose new value is in force, like "[limits] uid_bytes" */
    MEMCLIENT_RELOAD_RESTART,     /* a key whose new value takes a restart of the broker: memclient_upgrade() is one */
    MEMCLIENT_RELOAD_MISTAKE,     /* a sentence that begins with file and line: nothing has changed */
};

struct memclient_reload_line {
    unsigned what; /* enum memclient_reload_what */
    char text[256];
};

struct memclient_reload_result {
    size_t size;
    char config[256];        /* the file whose configuration is in force, "" if there is none */
    uint32_t n_lines;        /* of what is left out the last one of its kind tells how much that is */
    struct memclient_reload_line lines[48];
};
#define MEMCLIENT_RELOAD_RESULT_INIT MEMCLIENT_SIZED(struct memclient_reload_result)

/*
 * Has the broker read its configuration file again. A file with mistakes is no error of the call: then there are lines
 * that tell them, and nothing has changed. For administrators.
 *     -EPERM       the caller is none
 *     -ENOSYS      the broker is too old to be asked; SIGHUP has it read the file, too
 */
MEMCLIENT_API int memclient_reload(struct memclient *ctx, struct memclient_reload_result *result);

#ifdef __cplusplus
}
#endif

#endif
