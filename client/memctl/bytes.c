/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that read and write the bytes of a buffer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memctl/line.h"
#include "memctl/output.h"

static int open_mapped(struct memclient_context *ctx, unsigned rights, struct memclient_buffer **buf, char **ret_bytes)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *address;
    int r;

    r = line_open(ctx, rights, buf);
    if (r < 0)
        return r;
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    options.access = rights;
    r = memclient_map(*buf, &options, &address);
    if (!r)
        *ret_bytes = address;
    return r;
}

static int write_bytes(const struct invocation *invocation, const char *bytes, uint64_t size)
{
    uint64_t done = 0;

    while (done < size) {
        ssize_t n = write(STDOUT_FILENO, bytes + done, size - done);

        if (n >= 0)
            done += (uint64_t)n;
        else if (errno != EINTR)
            return refused(invocation, strerror(errno));
    }
    return EXIT_DONE;
}

/* Prints base64 as of RFC 4648, without line breaks. */
static void put_base64(const char *text, uint64_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = (const unsigned char *)text;

    for (uint64_t i = 0; i < size && !ferror(stdout); i += 3) {
        uint64_t left = size - i;
        uint32_t group =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);

        putchar_unlocked(digits[group >> 18]);
        putchar_unlocked(digits[group >> 12 & 63]);
        putchar_unlocked(left > 1 ? digits[group >> 6 & 63] : '=');
        putchar_unlocked(left > 2 ? digits[group & 63] : '=');
    }
}

/* Prints as it goes, not by a row: there may be more bytes than memory for their text. */
static int print_bytes(uint64_t id, const char *bytes, uint64_t size)
{
    printf("[\n  {\n    \"buffer\": %" PRIu64 ",\n    \"bytes\": %" PRIu64 ",\n    \"base64\": \"", id, size);
    put_base64(bytes, size);
    puts("\"\n  }\n]");
    return output_flush();
}

int run_cat(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    uint64_t size;
    char *bytes;
    int r;

    r = open_mapped(ctx, MEMCLIENT_READ, &buf, &bytes);
    if (r < 0)
        return r;
    size = memclient_buffer_size(buf);
    return invocation->json ? print_bytes(memclient_buffer_id(buf), bytes, size) : write_bytes(invocation, bytes, size);
}

/* Reads until the end of the input. */
static int read_bytes(const struct invocation *invocation, char *bytes, uint64_t size, uint64_t *ret_done)
{
    uint64_t done = 0;
    ssize_t n = 1;
    char more;

    while (n) {
        n = done < size ? read(STDIN_FILENO, bytes + done, size - done) : read(STDIN_FILENO, &more, 1);
        if (n < 0 && errno != EINTR)
            return refused(invocation, strerror(errno));
        if (n > 0 && done == size)
            return refused(invocation, "standard input has more bytes than the buffer, which is full now");
        if (n > 0)
            done += (uint64_t)n;
    }
    *ret_done = done;
    return EXIT_DONE;
}

int run_fill(struct invocation *invocation, struct memclient_context *ctx)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    uint64_t done = 0;
    char *bytes;
    int r;

    r = open_mapped(ctx, MEMCLIENT_READ | MEMCLIENT_WRITE, &buf, &bytes);
    if (!r)
        r = read_bytes(invocation, bytes, memclient_buffer_size(buf), &done);
    if (r || !invocation->json)
        return r;
    return output_one(
        json_pack("{s:I, s:I}", "buffer", (json_int_t)memclient_buffer_id(buf), "bytes", (json_int_t)done));
}
