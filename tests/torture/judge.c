/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of make torture. What it knows it has from files and from /proc: the descriptors that keeper and broker
 * have open, the pages of the memory files, and the bytes in them, found by the id in their names. It asks the broker
 * only whether it says the same, of each buffer to the page.
 */
#include "tests/integration/truth.h"
#include "tests/torture/torture.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/support/memory_files.h"

#define LINES 512

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

typedef void each_descriptor(int folder, const char *number, const char *target, void *data);

static void for_each_descriptor(pid_t pid, each_descriptor *fn, void *data)
{
    char path[64], target[256];
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    if (dir == NULL) {
        complain("cannot look into %s: %s", path, strerror(errno));
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        if (size < 0)
            continue;
        target[size] = '\0';
        fn(dirfd(dir), entry->d_name, target, data);
    }
    closedir(dir);
}

struct lines {
    const char *who;
    char line[LINES][80];
    size_t n;
    uint64_t memory_files;
    uint64_t memory_bytes;
};

/* "socket:[123]" without the number, which is another one in each run. */
static void add_line(int folder, const char *number, const char *target, void *data)
{
    struct lines *lines = data;
    struct stat st;

    if (strncmp(target, "/memfd:", 7) == 0 && fstatat(folder, number, &st, 0) == 0) {
        if (strncmp(target, MEMORY_FILE, strlen(MEMORY_FILE)) == 0)
            lines->memory_files++;
        lines->memory_bytes += (uint64_t)st.st_blocks * 512;
    }
    if (lines->n < LINES)
        snprintf(lines->line[lines->n++], sizeof(lines->line[0]), "%s %.*s", lines->who, (int)strcspn(target, "["),
                 target);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void take_inventory(pid_t keeper, struct inventory *inventory)
{
    static struct lines lines;
    size_t at = 0;

    memset(&lines, 0, sizeof(lines));
    lines.who = "keeper";
    for_each_descriptor(keeper, add_line, &lines);
    inventory->memory_files = lines.memory_files;
    inventory->memory_bytes = lines.memory_bytes;
    lines.who = "broker";
    for_each_descriptor(youngest_child_of(keeper) ? youngest_child_of(keeper) : keeper, add_line, &lines);
    qsort(lines.line, lines.n, sizeof(lines.line[0]), compare_lines);
    inventory->text[0] = '\0';
    for (size_t i = 0; i < lines.n && at < sizeof(inventory->text); i++)
        at += (size_t)snprintf(inventory->text + at, sizeof(inventory->text) - at, "%s\n", lines.line[i]);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

#define ASK(call)                                                                                 \
    do {                                                                                          \
        int result_ = (call);                                                                     \
        if (result_ < 0)                                                                          \
            complain("the judge: %s: %s (\"%s\")", #call, strerror(-result_), memclient_error()); \
    } while (0)

static struct memclient_context *come(const char *socket)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx = NULL;

    options.socket = socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    options.deadline_ms = PATIENCE_MS;
    ASK(memclient_context_open(&options, &ctx));
    return ctx;
}

static struct memclient_broker_info status_of(struct memclient_context *ctx)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    ASK(memclient_broker_query(ctx, &status));
    return status;
}

static uint64_t prove_sums(struct memclient_context *ctx)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    ASK(memclient_broker_check(ctx, &result));
    for (uint32_t i = 0; i < result.n_sentences; i++)
        complain("check: %s", result.sentences[i]);
    if (result.faults)
        complain("check found %" PRIu32 " faults", result.faults);
    return result.records;
}

void judge_inventory(const char *socket, pid_t keeper, struct inventory *inventory)
{
    struct memclient_context *ctx = come(socket);

    inventory->records = prove_sums(ctx);
    memclient_context_close(ctx);
    /* the connection's descriptors go when the broker has seen the end of it */
    for (int i = 0; i < 1000; i++) {
        take_inventory(keeper, inventory);
        if (strstr(inventory->text, "memoryd:releases") == NULL)
            break;
        wait_a_moment();
    }
}

/* ---- what killed clients left ------------------------------------------------------------------------------------ */

struct sweep {
    struct memclient_context *ctx;
    bool all;
};

/* Is it bound as its place says? "torture/PLACE.GENERATION", and "/second" for a second one. */
static bool is_wanted_name(const char *name)
{
    char wanted[64];

    for (uint32_t i = 0; i < PLACES; i++) {
        const struct place *place = &shared->places[i];

        if (place->life != LIFE_NAMED || place->changing)
            continue;
        place_name(i, place->generation, false, wanted);
        if (strcmp(name, wanted) == 0)
            return true;
        place_name(i, place->generation, true, wanted);
        if (place->second_name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

static int sweep_name(const struct memclient_name_info *name, void *data)
{
    struct sweep *sweep = data;

    if (sweep->all || !is_wanted_name(name->name))
        ASK(memclient_unbind_name(sweep->ctx, name->name));
    return 0;
}

static uint64_t serial_of(const struct memclient_token *token)
{
    uint64_t serial = 0;

    for (int i = 7; i >= 0; i--)
        serial = serial << 8 | token->bytes[8 + i];
    return serial;
}

static bool is_wanted_token(uint64_t serial)
{
    for (uint32_t i = 0; i < PLACES; i++)
        if (shared->places[i].life != LIFE_NONE && serial_of(&shared->places[i].token) == serial)
            return true;
    return false;
}

static int sweep_token(const struct memclient_token_info *token, void *data)
{
    struct sweep *sweep = data;

    if (sweep->all || !is_wanted_token(token->serial))
        ASK(memclient_revoke_serial(sweep->ctx, token->serial));
    return 0;
}

/* Tokens first: those of a buffer go with it. */
static void sweep_up(struct memclient_context *ctx, bool all)
{
    struct sweep sweep = {.ctx = ctx, .all = all};

    ASK(memclient_list_tokens(ctx, sweep_token, &sweep));
    ASK(memclient_list_names(ctx, sweep_name, &sweep));
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

struct search {
    uint64_t id;
    int fd;
};

static void look_for(int folder, const char *number, const char *target, void *data)
{
    struct search *search = data;

    if (search->fd < 0 && strncmp(target, MEMORY_FILE, strlen(MEMORY_FILE)) == 0 &&
        strtoull(target + strlen(MEMORY_FILE), NULL, 10) == search->id)
        search->fd = openat(folder, number, O_RDONLY | O_CLOEXEC);
}

static void judge_bytes(pid_t keeper, uint32_t i)
{
    const struct place *place = &shared->places[i];
    struct search search = {.id = place->id, .fd = -1};
    uint64_t keys[VERSIONS], wrong;
    void *p;

    for_each_descriptor(keeper, look_for, &search);
    if (search.fd < 0) {
        atomic_fetch_add(&shared->figures.bytes_wrong, place->size);
        complain("the buffer %" PRIu64 " of place %u is not with the keeper", place->id, i);
        return;
    }
    p = mmap(NULL, place->size, PROT_READ, MAP_SHARED, search.fd, 0);
    close(search.fd);
    if (p == MAP_FAILED) {
        complain("cannot map the buffer %" PRIu64 " of place %u: %s", place->id, i, strerror(errno));
        return;
    }
    for (uint32_t v = 0; v < place->n_versions; v++)
        keys[v] = key_of(i, place->generation, place->versions[v]);
    wrong = bytes_wrong(p, place->size, keys, place->n_versions);
    if (wrong)
        complain("the judge: %" PRIu64 " bytes of place %u are wrong", wrong, i);
    munmap(p, place->size);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

struct sums {
    uint64_t sessions, buffers, bytes, names, tokens, reservations;
};

static struct sums what_should_be(void)
{
    struct sums sums = {.sessions = 1}; /* the judge's own */

    for (uint32_t i = 0; i < PLACES; i++) {
        const struct place *place = &shared->places[i];

        if (place->life == LIFE_NONE)
            continue;
        sums.buffers++;
        sums.tokens++;
        sums.bytes += place->size;
        sums.names += place->life == LIFE_NAMED ? 1u + place->second_name : 0;
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        sums.sessions++;
        sums.buffers += shared->members[i].buffers;
        sums.bytes += shared->members[i].bytes;
        sums.reservations += shared->members[i].reservations;
    }
    return sums;
}

static bool are_equal(const struct memclient_broker_info *is, const struct sums *should)
{
    return is->sessions == should->sessions && is->buffers == should->buffers && is->buffers_detached == 0 &&
           is->bytes == should->bytes && is->names == should->names && is->tokens == should->tokens &&
           is->reservations == should->reservations;
}

static bool is_known(uint64_t id)
{
    for (uint32_t i = 0; i < PLACES; i++)
        if (shared->places[i].life != LIFE_NONE && shared->places[i].id == id)
            return true;
    for (uint32_t i = 0; i < CLIENTS; i++)
        for (uint32_t k = 0; k < OWN_BUFFERS; k++)
            if (shared->members[i].ids[k] == id)
                return true;
    return false;
}

static int say_if_unknown(const struct memclient_buffer_info *info, void *data)
{
    (void)data;
    if (!is_known(info->id))
        complain("buffer %" PRIu64 " of pid %d is nobody's: state %u, flags %#x, %" PRIu64 " bytes, %" PRIu32
                 " holds, %" PRIu32 " names, %" PRIu32 " tokens",
                 info->id, (int)info->pid, info->state, info->flags, info->bytes, info->holds, info->names,
                 info->tokens);
    return 0;
}

static void compare(struct memclient_context *ctx, const struct sums *should)
{
    struct memclient_broker_info is = status_of(ctx);

    if (WAIT_UNTIL((is = status_of(ctx), are_equal(&is, should))))
        return;
    complain("there are (should be): %" PRIu64 " (%" PRIu64 ") sessions, %" PRIu64 " (%" PRIu64 ") buffers, %" PRIu64
             " detached, %" PRIu64 " (%" PRIu64 ") bytes, %" PRIu64 " (%" PRIu64 ") names, %" PRIu64 " (%" PRIu64
             ") tokens, %" PRIu64 " (%" PRIu64 ") reservations",
             is.sessions, should->sessions, is.buffers, should->buffers, is.buffers_detached, is.bytes, should->bytes,
             is.names, should->names, is.tokens, should->tokens, is.reservations, should->reservations);
    ASK(memclient_list_buffers(ctx, say_if_unknown, NULL));
}

/* Done once and not twice: each session has just what its client has. */
static int compare_session(const struct memclient_session_info *session, void *data)
{
    (void)data;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct member *member = &shared->members[i];

        if (session->pid == atomic_load(&member->pid) &&
            (session->holds != member->handles || session->reservations != member->reservations))
            complain("client %u has %u handles and %u reservations, its session %" PRIu64 " has %u and %u", i,
                     member->handles, member->reservations, session->id, session->holds, session->reservations);
    }
    return 0;
}

/* What a client that died left half done is nobody's any more. */
static void settle_places(void)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        struct place *place = &shared->places[i];

        if (place->changing || (place->life == LIFE_HELD && is_doomed(place->maker, place->incarnation))) {
            place->finals[place->generation % FINALS] = UNKNOWN;
            place->generation++;
            place->life = LIFE_NONE;
            place->changing = place->second_name = false;
        }
    }
}

/* The kernel has as much as is listed, buffer by buffer: what was discarded has been written again. */
static void prove_truth(struct memclient_context *ctx, pid_t keeper, uint64_t listed)
{
    struct truth truth;

    if (!truth_comes(ctx, keeper, listed, 0, &truth))
        complain("%" PRIu64 " bytes are listed (should be: %" PRIu64 ") and %" PRIu64
                 " in stock, the kernel has %" PRIu64 ": %s",
                 truth.listed, listed, truth.stock, truth.allocated, truth.fault);
}

void judge_round(const char *socket, pid_t keeper)
{
    struct memclient_context *ctx = come(socket);
    struct sums should;

    settle_places();
    sweep_up(ctx, false);
    should = what_should_be();
    compare(ctx, &should);
    ASK(memclient_list_sessions(ctx, compare_session, NULL));
    prove_sums(ctx);
    prove_truth(ctx, keeper, should.bytes);
    for (uint32_t i = 0; i < PLACES; i++)
        if (shared->places[i].life != LIFE_NONE)
            judge_bytes(keeper, i);
    memclient_context_close(ctx);
}

/* From its most down to nothing, a half every 10 s. */
#define STOCK_GOES_MS 200000

static int add_stock(const struct memclient_pool_info *pool, void *data)
{
    *(uint64_t *)data += pool->stock_buffers;
    return 0;
}

static bool wait_for_stock(struct memclient_context *ctx)
{
    int64_t end = wait_now_ms() + STOCK_GOES_MS;
    uint64_t stock;

    do {
        stock = 0;
        wait_a_moment();
        ASK(memclient_list_pools(ctx, add_stock, &stock));
    } while (stock && wait_now_ms() < end);
    return !stock;
}

void judge_end(const char *socket, pid_t keeper, const struct inventory *before, struct inventory *after)
{
    static const struct sums nothing = {.sessions = 1};
    struct memclient_context *ctx = come(socket);

    sweep_up(ctx, true);
    compare(ctx, &nothing);
    if (!wait_for_stock(ctx))
        complain("buffers are still in stock, though nobody asked for any in the last %d s", STOCK_GOES_MS / 1000);
    memclient_context_close(ctx);
    (void)WAIT_UNTIL((judge_inventory(socket, keeper, after), strcmp(before->text, after->text) == 0));
    if (strcmp(before->text, after->text) != 0)
        complain("the descriptors are not those of the start; before:\n%s\nafter:\n%s", before->text, after->text);
    if (after->memory_files)
        complain("%" PRIu64 " memory files are left", after->memory_files);
    if (after->records != before->records)
        complain("%" PRIu64 " records are left, there were %" PRIu64 " before", after->records, before->records);
}
