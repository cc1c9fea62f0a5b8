/* SPDX-License-Identifier: Apache-2.0 */
/* Getting buffers from one process to another: descriptors, tokens, names. */
#include <fcntl.h>
#include <string.h>

#include "api/check.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/steal.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/ready.h"
#include "proto/status.h"

#define ALL_RIGHTS (MEMCLIENT_READ | MEMCLIENT_WRITE | MEMCLIENT_SHARE | MEMCLIENT_MANAGE)
/* of those that open */
#define OPEN_RIGHTS (ALL_RIGHTS | MEMCLIENT_ACCEPT_FOREIGN)

/* The one item of a reply: its own refusal is the call's. */
static int adopt_one(struct memclient *ctx, struct channel *channel, struct rpc_opened *opened,
                     bool writable_fds, struct memclient_buffer **bufp)
{
    struct memclient_buffer *buf;
    unsigned status = opened->items[0].status;
    int r;

    if (status) {
        rpc_opened_deinit(opened);
        return fail_refused(status, opened->sentence);
    }
    r = buffer_adopt(ctx, channel, opened, writable_fds, &buf);
    if (!r)
        *bufp = buf;
    return r;
}

/* ---- descriptors ---------------------------------------------------------------------------- */

int memclient_export_fd(struct memclient_buffer *buf, unsigned rights, int *fd)
{
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_pointer(fd, "fd");
    if (!r)
        r = check_rights(rights, MEMCLIENT_READ | MEMCLIENT_WRITE, "rights");
    if (r)
        return r;
    if (!rights)
        rights = buffer_may_write(buf) ? MEMCLIENT_WRITE : MEMCLIENT_READ;
    hold_cache_let_out(buf, true);
    return buffer_export(buf, rights | MEMCLIENT_READ, context_deadline(buf->ctx), fd);
}

/* The method that takes it: IMPORT or ADOPT. */
typedef int take_fd(struct channel *channel, int fd, uint64_t deadline, struct rpc_opened *opened);

/* What it is imported by is kept for mapping it, as a descriptor that comes from the broker is. Takes `kept`, or -1. */
static int take(struct memclient *ctx, struct channel *channel, take_fd *method, int fd, int *kept, uint64_t deadline,
                struct memclient_buffer **buf)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    int access = fcntl(*kept, F_GETFL) & O_ACCMODE;
    int r = method(channel, fd, deadline, &opened);

    if (r)
        return r;
    if (!opened.items[0].status && (access == O_RDONLY || access == O_RDWR))
        opened.items[0].fd = steal_fd(kept);
    return adopt_one(ctx, channel, &opened, access == O_RDWR, buf);
}

static int open_fd(struct memclient *ctx, take_fd *method, int fd, struct memclient_buffer **buf)
{
    _cleanup_close_ int kept = -1;
    uint64_t deadline;
    int r;

    r = check_pointer(buf, "buf");
    if (!r && fcntl(fd, F_GETFD) < 0)
        r = fail_with(EBADF, "%d is no open descriptor", fd);
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    /* without room for it, mapping will ask for one */
    if (method == rpc_import)
        kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    deadline = context_deadline(ctx);
    r = CONTEXT_CALL(ctx, deadline, channel,
                     take(ctx, channel, method, kept < 0 ? fd : kept, &kept, deadline, buf));
    if (!r)
        hold_cache_let_out(*buf, true);
    return r;
}

int memclient_import_fd(struct memclient *ctx, int fd, struct memclient_buffer **buf)
{
    return open_fd(ctx, rpc_import, fd, buf);
}

int memclient_adopt_fd(struct memclient *ctx, int fd, struct memclient_buffer **buf)
{
    return open_fd(ctx, rpc_adopt, fd, buf);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static int check_share(const struct memclient_share_options *from,
                       struct memclient_share_options *options)
{
    const unsigned flags = MEMCLIENT_TOKEN_KEEPING | MEMCLIENT_TOKEN_ONLY_UID |
                           MEMCLIENT_TOKEN_ONLY_GID | MEMCLIENT_TOKEN_ONLY_PID;
    int r;

    r = check_options(options, sizeof(*options), from, "share options");
    if (!r)
        r = check_rights(options->rights, ALL_RIGHTS, "rights");
    if (r)
        return r;
    if (options->flags & ~flags)
        return fail_with(EINVAL, "flags: 0x%x has bits that no token has", options->flags);
    if (options->flags & MEMCLIENT_TOKEN_KEEPING && !options->uses && !options->expiry_ms)
        return fail_with(EINVAL, "a keeping token needs a number of uses or an expiry");
    return 0;
}

/* Some of those that tokens are wanted of: their places among all. */
struct wanted {
    unsigned n;
    unsigned at[MEMORYD_BATCH_MAX];
};

static int ask(const struct wanted *wanted, struct memclient_buffer *const *bufs,
               const struct memclient_share_options *terms, uint64_t deadline, struct rpc_shared *shared)
{
    struct memclient_buffer *some[MEMORYD_BATCH_MAX];
    uint64_t ids[MEMORYD_BATCH_MAX];
    int r;

    for (unsigned i = 0; i < wanted->n; i++) {
        some[i] = bufs[wanted->at[i]];
        ids[i] = some[i]->id;
    }
    r = buffer_claim_others(wanted->n, some, deadline);
    if (r)
        return r;
    return BUFFER_CALL(some[wanted->n - 1], deadline, channel,
                       rpc_share(channel, wanted->n, ids, terms, deadline, shared));
}

static struct wanted still_wanted(const int *results, unsigned n, int result)
{
    struct wanted wanted = {.n = 0};

    for (unsigned i = 0; i < n; i++)
        if (results[i] == result)
            wanted.at[wanted.n++] = i;
    return wanted;
}

/* Where others that nobody has got are in the way of a limit, these make room, and it is tried once more. */
static int ask_all(struct memclient *ctx, struct wanted wanted, struct memclient_buffer *const *bufs,
                   const struct memclient_share_options *terms, struct memclient_token *tokens, int *results,
                   unsigned n)
{
    uint64_t deadline = context_deadline(ctx);
    struct rpc_shared shared;
    unsigned first;
    int r;

    do {
        r = ask(&wanted, bufs, terms, deadline, &shared);
        if (r)
            return r;
        first = 0;
        for (unsigned i = wanted.n; i-- > 0;) {
            unsigned at = wanted.at[i];

            results[at] = shared.statuses[i] ? -status_errno(shared.statuses[i]) : 0;
            if (!results[at])
                tokens[at] = shared.tokens[i];
            else
                first = shared.statuses[i];
        }
        if (first)
            (void)fail_refused(first, shared.sentence);
        wanted = still_wanted(results, n, -EDQUOT);
    } while (wanted.n && ready_revoke_all(ctx, deadline));
    return 0;
}

static int share(struct memclient *ctx, unsigned n, struct memclient_buffer *const *bufs,
                 const struct memclient_share_options *options, struct memclient_token *tokens,
                 int *results)
{
    struct memclient_share_options terms = *options;
    struct wanted wanted = {.n = 0};
    bool plain;

    if (!terms.rights) {
        terms.rights = MEMCLIENT_READ | MEMCLIENT_WRITE;
        for (unsigned i = 0; i < n; i++)
            if (!buffer_may_write(bufs[i]))
                terms.rights = MEMCLIENT_READ;
    }
    plain = terms.rights == (MEMCLIENT_READ | MEMCLIENT_WRITE) && !terms.flags && !terms.uses && !terms.expiry_ms;
    for (unsigned i = 0; i < n; i++) {
        hold_cache_let_out(bufs[i], false);
        if (plain && ready_take(bufs[i], &tokens[i]))
            results[i] = 0;
        else
            wanted.at[wanted.n++] = i;
    }
    return wanted.n ? ask_all(ctx, wanted, bufs, &terms, tokens, results, n) : 0;
}

int memclient_share_many(size_t n, struct memclient_buffer *const *bufs,
                         const struct memclient_share_options *from,
                         struct memclient_token *tokens, int *results)
{
    struct memclient_share_options options;
    int r;

    r = check_pointer(bufs, "bufs");
    if (!r)
        r = check_pointer(tokens, "tokens");
    if (!r)
        r = check_pointer(results, "results");
    if (!r)
        r = check_share(from, &options);
    for (size_t i = 0; !r && i < n; i++) {
        r = check_pointer(bufs[i], "a buffer");
        if (!r && bufs[i]->ctx != bufs[0]->ctx)
            r = fail_with(EINVAL, "the buffers are of different contexts");
    }
    for (size_t i = 0; !r && i < n; i += MEMORYD_BATCH_MAX) {
        size_t part = n - i < MEMORYD_BATCH_MAX ? n - i : MEMORYD_BATCH_MAX;

        r = share(bufs[0]->ctx, (unsigned)part, bufs + i, &options, tokens + i, results + i);
        /* what was made before cannot be taken back in one step: the rest is told item by item */
        if (r && i) {
            for (size_t k = i; k < n; k++)
                results[k] = r;
            r = 0;
            break;
        }
    }
    return r;
}

int memclient_share(struct memclient_buffer *buf, const struct memclient_share_options *options,
                    struct memclient_token *token)
{
    int result = 0;
    int r = memclient_share_many(1, &buf, options, token, &result);

    return r ? r : result;
}

static int open_tokens(struct memclient *ctx, struct channel *channel, unsigned n,
                       const struct memclient_token *tokens, unsigned rights, uint64_t deadline,
                       struct memclient_buffer **bufs, int *results)
{
    struct memclient_buffer *made[MEMORYD_BATCH_MAX];
    struct rpc_opened opened = RPC_OPENED_NULL;
    unsigned first = 0;
    int failed[MEMORYD_BATCH_MAX];
    int r;

    r = rpc_open(channel, n, tokens, rights, deadline, &opened);
    if (r)
        return r;
    for (unsigned i = n; i-- > 0;) {
        failed[i] = opened.items[i].status ? -status_errno(opened.items[i].status) : 0;
        if (failed[i])
            first = opened.items[i].status;
    }
    r = buffer_adopt(ctx, channel, &opened, true, made);
    if (r)
        return r;
    memcpy(bufs, made, n * sizeof(made[0]));
    memcpy(results, failed, n * sizeof(failed[0]));
    if (first)
        (void)fail_refused(first, opened.sentence);
    return 0;
}

int memclient_open_tokens(struct memclient *ctx, size_t n, const struct memclient_token *tokens,
                          unsigned rights, struct memclient_buffer **bufs, int *results)
{
    uint64_t deadline;
    size_t done;
    int r;

    r = check_pointer(tokens, "tokens");
    if (!r)
        r = check_pointer(bufs, "bufs");
    if (!r)
        r = check_pointer(results, "results");
    if (!r)
        r = check_rights(rights, OPEN_RIGHTS, "rights");
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    deadline = context_deadline(ctx);
    for (done = 0; done < n;) {
        unsigned part = n - done < MEMORYD_BATCH_MAX ? (unsigned)(n - done) : MEMORYD_BATCH_MAX;

        r = CONTEXT_CALL(ctx, deadline, channel,
                         open_tokens(ctx, channel, part, tokens + done, rights, deadline,
                                     bufs + done, results + done));
        if (r)
            break;
        done += part;
    }
    if (r)
        while (done)
            if (!results[--done])
                bufs[done] = buffer_unref(bufs[done]);
    return r;
}

int memclient_open_token(struct memclient *ctx, const struct memclient_token *token,
                         unsigned rights, struct memclient_buffer **bufp)
{
    struct memclient_buffer *buf = NULL;
    int result = 0;
    int r;

    r = check_pointer(bufp, "buf");
    if (!r)
        r = memclient_open_tokens(ctx, 1, token, rights, &buf, &result);
    if (!r && !result)
        *bufp = buf;
    return r ? r : result;
}

static int revoke_one(struct memclient *ctx, const struct memclient_token *token, uint64_t serial)
{
    uint64_t deadline;
    int r = check_context(&ctx);

    if (r)
        return r;
    deadline = context_deadline(ctx);
    return CONTEXT_CALL(ctx, deadline, channel, rpc_revoke(channel, token, serial, 0, deadline));
}

int memclient_revoke(struct memclient *ctx, const struct memclient_token *token)
{
    int r = check_pointer(token, "token");

    return r ? r : revoke_one(ctx, token, 0);
}

int memclient_revoke_serial(struct memclient *ctx, uint64_t serial)
{
    return serial ? revoke_one(ctx, NULL, serial) : fail_with(EINVAL, "0 is no token's serial number");
}

int memclient_revoke_all(struct memclient_buffer *buf)
{
    uint64_t deadline;
    int r = check_pointer(buf, "buf");

    if (r)
        return r;
    ready_forget_id(buf->ctx, buf->id);
    deadline = context_deadline(buf->ctx);
    return BUFFER_CALL(buf, deadline, channel, rpc_revoke(channel, NULL, 0, buf->id, deadline));
}

void memclient_token_format(const struct memclient_token *token,
                            char text[MEMCLIENT_TOKEN_TEXT + 1])
{
    bytes_to_hex(token->bytes, sizeof(token->bytes), text);
}

int memclient_token_parse(const char *text, struct memclient_token *token)
{
    int r = check_pointer(text, "text");

    if (!r)
        r = check_pointer(token, "token");
    if (!r && !bytes_from_hex(text, token->bytes, sizeof(token->bytes)))
        r = fail_with(EBADMSG, "not a token: its text is %d hexadecimal digits", MEMCLIENT_TOKEN_TEXT);
    return r;
}

/* ---- names and ids -------------------------------------------------------------------------- */

int memclient_name_bind(struct memclient_buffer *buf, const char *name,
                        const struct memclient_name_options *from)
{
    struct memclient_name_options options;
    uint64_t deadline;
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_name(name);
    if (!r)
        r = check_name_options(from, &options);
    if (r)
        return r;
    hold_cache_let_out(buf, false);
    deadline = context_deadline(buf->ctx);
    return BUFFER_CALL(buf, deadline, channel,
                       rpc_name_bind(channel, buf->id, name, &options, deadline));
}

int memclient_name_unbind(struct memclient *ctx, const char *name)
{
    uint64_t deadline;
    int r;

    r = check_name(name);
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    deadline = context_deadline(ctx);
    return CONTEXT_CALL(ctx, deadline, channel, rpc_name_unbind(channel, name, deadline));
}

static int lookup(struct memclient *ctx, struct channel *channel, const char *name, uint64_t id,
                  unsigned rights, unsigned claim, uint64_t deadline,
                  struct memclient_buffer **buf)
{
    struct rpc_opened opened = RPC_OPENED_NULL;
    int r = rpc_lookup(channel, name, id, rights, claim, deadline, &opened);

    if (!r)
        r = adopt_one(ctx, channel, &opened, true, buf);
    if (!r && claim != MEMCLIENT_CLAIM_NONE)
        buffer_set_keeps_out(*buf);
    return r;
}

static int open_by(struct memclient *ctx, const char *name, uint64_t id, unsigned rights,
                   unsigned claim, struct memclient_buffer **buf)
{
    uint64_t deadline;
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_rights(rights, OPEN_RIGHTS, "rights");
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    deadline = context_deadline(ctx);
    return CONTEXT_CALL(ctx, deadline, channel,
                        lookup(ctx, channel, name, id, rights, claim, deadline, buf));
}

int memclient_open_name(struct memclient *ctx, const char *name, unsigned rights,
                        struct memclient_buffer **buf)
{
    int r = check_name(name);

    return r ? r : open_by(ctx, name, 0, rights, MEMCLIENT_CLAIM_NONE, buf);
}

int memclient_claim_name(struct memclient *ctx, const char *name, unsigned rights, unsigned claim,
                         struct memclient_buffer **buf)
{
    int r = check_name(name);

    if (!r && claim != MEMCLIENT_CLAIM_SHARED && claim != MEMCLIENT_CLAIM_EXCLUSIVE)
        r = fail_with(EINVAL, "claim: %u is neither shared nor exclusive", claim);
    return r ? r : open_by(ctx, name, 0, rights, claim, buf);
}

int memclient_open_id(struct memclient *ctx, uint64_t id, unsigned rights,
                      struct memclient_buffer **buf)
{
    return id ? open_by(ctx, NULL, id, rights, MEMCLIENT_CLAIM_NONE, buf) : fail_with(EINVAL, "0 is no buffer's id");
}
