/* SPDX-License-Identifier: Apache-2.0 */
/* Getting buffers from one process to another: descriptors, tokens, names. */
#include <fcntl.h>

#include "api/check.h"
#include "base/bytes.h"
#include "core/buffer.h"
#include "core/share.h"

#define ALL_RIGHTS (MEMCLIENT_READ | MEMCLIENT_WRITE | MEMCLIENT_SHARE | MEMCLIENT_MANAGE)
/* the rights of functions that open */
#define OPEN_RIGHTS (ALL_RIGHTS | MEMCLIENT_ACCEPT_FOREIGN)

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

int memclient_export_fd(struct memclient_buffer *buf, unsigned rights, int *fd)
{
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_pointer(fd, "fd");
    if (!r)
        r = check_rights(rights, MEMCLIENT_READ | MEMCLIENT_WRITE, "rights");
    return r ? r : share_fd(buf, rights, fd);
}

static int open_fd(struct memclient_context *ctx,
                   int (*opens)(struct memclient_context *, int, struct memclient_buffer **), int fd,
                   struct memclient_buffer **buf)
{
    int r;

    r = check_pointer(buf, "buf");
    if (!r && fcntl(fd, F_GETFD) < 0)
        r = fail_with(EBADF, "%d is no open descriptor", fd);
    if (!r)
        r = check_context(&ctx);
    return r ? r : opens(ctx, fd, buf);
}

int memclient_import_fd(struct memclient_context *ctx, int fd, struct memclient_buffer **buf)
{
    return open_fd(ctx, share_import, fd, buf);
}

int memclient_adopt_fd(struct memclient_context *ctx, int fd, struct memclient_buffer **buf)
{
    return open_fd(ctx, share_adopt, fd, buf);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int check_share(const struct memclient_share_options *from, struct memclient_share_options *options)
{
    const unsigned flags =
        MEMCLIENT_TOKEN_KEEPING | MEMCLIENT_TOKEN_ONLY_UID | MEMCLIENT_TOKEN_ONLY_GID | MEMCLIENT_TOKEN_ONLY_PID;
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

int memclient_share_many(size_t n, struct memclient_buffer *const *bufs, const struct memclient_share_options *from,
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
        r = check_pointer(bufs[i], "a buffer of bufs");
        if (!r && bufs[i]->ctx != bufs[0]->ctx)
            r = fail_with(EINVAL, "the buffers are of different contexts");
    }
    return r || !n ? r : share_tokens(n, bufs, &options, tokens, results);
}

int memclient_share(struct memclient_buffer *buf, const struct memclient_share_options *options,
                    struct memclient_token *token)
{
    int result = 0, r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_pointer(token, "token");
    if (!r)
        r = memclient_share_many(1, &buf, options, token, &result);
    return r ? r : result;
}

int memclient_open_token_many(struct memclient_context *ctx, size_t n, const struct memclient_token *tokens,
                              unsigned rights, struct memclient_buffer **bufs, int *results)
{
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
    return r ? r : share_open_tokens(ctx, n, tokens, rights, bufs, results);
}

int memclient_open_token(struct memclient_context *ctx, const struct memclient_token *token, unsigned rights,
                         struct memclient_buffer **bufp)
{
    struct memclient_buffer *buf = NULL;
    int result = 0;
    int r;

    r = check_pointer(bufp, "buf");
    if (!r)
        r = memclient_open_token_many(ctx, 1, token, rights, &buf, &result);
    if (!r && !result)
        *bufp = buf;
    return r ? r : result;
}

static int revoke_one(struct memclient_context *ctx, const struct memclient_token *token, uint64_t serial)
{
    int r = check_context(&ctx);

    return r ? r : rpc_revoke(context_route(ctx), token, serial, 0);
}

int memclient_revoke_token(struct memclient_context *ctx, const struct memclient_token *token)
{
    int r = check_pointer(token, "token");

    return r ? r : revoke_one(ctx, token, 0);
}

int memclient_revoke_serial(struct memclient_context *ctx, uint64_t serial)
{
    return serial ? revoke_one(ctx, NULL, serial) : fail_with(EINVAL, "0 is no token's serial number");
}

int memclient_revoke_all_tokens(struct memclient_buffer *buf)
{
    int r = check_pointer(buf, "buf");

    return r ? r : share_revoke_all(buf);
}

void memclient_token_format(const struct memclient_token *token, char text[MEMCLIENT_TOKEN_TEXT_SIZE])
{
    bytes_to_hex(token->bytes, sizeof(token->bytes), text);
}

int memclient_token_parse(const char *text, struct memclient_token *token)
{
    int r = check_pointer(text, "text");

    if (!r)
        r = check_pointer(token, "token");
    if (!r && !bytes_from_hex(text, token->bytes, sizeof(token->bytes)))
        r = fail_with(EBADMSG, "not a token: its text is %d hexadecimal digits", MEMCLIENT_TOKEN_TEXT_SIZE - 1);
    return r;
}

/* ---- names and ids ----------------------------------------------------------------------------------------------- */

int memclient_bind_name(struct memclient_buffer *buf, const char *name, const struct memclient_name_options *from)
{
    struct memclient_name_options options;
    int r;

    r = check_pointer(buf, "buf");
    if (!r)
        r = check_name(name);
    if (!r)
        r = check_name_options(from, &options);
    return r ? r : share_name(buf, name, &options);
}

int memclient_unbind_name(struct memclient_context *ctx, const char *name)
{
    int r = check_name(name);

    if (!r)
        r = check_context(&ctx);
    return r ? r : rpc_name_unbind(context_route(ctx), name);
}

static int open_by(struct memclient_context *ctx, const struct lookup_spec *spec, struct memclient_buffer **buf)
{
    int r = check_pointer(buf, "buf");

    if (!r)
        r = check_rights(spec->rights, OPEN_RIGHTS, "rights");
    if (!r)
        r = check_context(&ctx);
    return r ? r : share_lookup(ctx, spec, buf);
}

int memclient_open_name(struct memclient_context *ctx, const char *name, unsigned rights, struct memclient_buffer **buf)
{
    int r = check_name(name);

    return r ? r : open_by(ctx, &(struct lookup_spec){.name = name, .rights = rights}, buf);
}

int memclient_claim_name(struct memclient_context *ctx, const char *name, unsigned rights, unsigned claim,
                         struct memclient_buffer **buf)
{
    int r = check_name(name);

    if (!r && claim != MEMCLIENT_CLAIM_SHARED && claim != MEMCLIENT_CLAIM_EXCLUSIVE)
        r = fail_with(EINVAL, "claim: %u is neither shared nor exclusive", claim);
    return r ? r : open_by(ctx, &(struct lookup_spec){.name = name, .rights = rights, .claim = claim}, buf);
}

int memclient_open_id(struct memclient_context *ctx, uint64_t id, unsigned rights, struct memclient_buffer **buf)
{
    return id ? open_by(ctx, &(struct lookup_spec){.id = id, .rights = rights}, buf)
              : fail_with(EINVAL, "0 is no buffer's id");
}
