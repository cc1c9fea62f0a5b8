/* SPDX-License-Identifier: Apache-2.0 */
/* See fake.h. */
#include "tests/unit/rpc/fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct fake fake;

void fake_reset(void)
{
    fake = (struct fake){.n_records = 3};
}

void fake_end(int status)
{
    struct op *op = fake.pending;

    fake.pending = NULL;
    op->done(op, status);
}

static struct fake_kept *find_kept(uint64_t sequence)
{
    for (unsigned i = 0; sequence && i < sizeof(fake.kept) / sizeof(fake.kept[0]); i++)
        if (fake.kept[i].sequence == sequence)
            return &fake.kept[i];
    return NULL;
}

bool op_acknowledge(struct broker *broker, uint64_t session, uint64_t acknowledged, uint64_t answered)
{
    bool any = false;

    for (unsigned i = 0; i < sizeof(fake.kept) / sizeof(fake.kept[0]); i++) {
        struct fake_kept *kept = &fake.kept[i];

        if (kept->sequence && (kept->sequence <= acknowledged || kept->sequence == answered))
            kept->sequence = 0;
        any = any || kept->sequence;
    }
    return any;
}

int op_begin(struct broker *broker, const struct op_request *request, struct op **ret_running, struct problem *problem)
{
    struct fake_kept *kept = find_kept(request->sequence);

    if (kept && kept->done)
        return OP_ANSWERED;
    if (kept) {
        *ret_running = kept->running;
        return OP_RUNNING;
    }
    if (!request->recorded || (fake.begin && fake.begin != OP_REPLAY))
        return fake.begin;
    for (unsigned i = 0; i < sizeof(fake.kept) / sizeof(fake.kept[0]); i++) {
        kept = &fake.kept[i];
        if (kept->sequence)
            continue;
        *kept = (struct fake_kept){.sequence = request->sequence};
        return fake.begin;
    }
    return refuse(problem, STATUS_LIMIT, "no more than four");
}

void reply_store(struct broker *broker, uint64_t session, uint64_t sequence, const struct op_reply *reply,
                 const void *message)
{
    struct fake_kept *kept = find_kept(sequence);

    if (!kept)
        return;
    kept->done = true;
    kept->reply = *reply;
    memcpy(kept->message, message, reply->size);
}

void reply_load(struct broker *broker, uint64_t session, uint64_t sequence, struct op_reply *ret, void *message)
{
    struct fake_kept *kept = find_kept(sequence);

    *ret = kept->reply;
    memcpy(message, kept->message, kept->reply.size);
}

void op_executing(struct broker *broker, uint64_t session, uint64_t sequence, uint16_t method)
{
    fake.executing = sequence;
}

void op_executed(struct broker *broker)
{
    fake.executing = 0;
}

static int operation(struct op *op, const char *name)
{
    fake.operation = name;
    fake.calls++;
    fake.was_executing = fake.executing;
    fake.replay = op->replay;
    if (fake.sentence)
        problem_set(&op->problem, "%s", fake.sentence);
    if (fake.pend) {
        struct fake_kept *kept = find_kept(op->sequence);

        fake.pending = op;
        if (kept)
            kept->running = op;
        return OP_PENDING;
    }
    if (fake.settle) {
        fake.pending = op;
        return OP_SETTLING;
    }
    return fake.status;
}

void op_refused(struct broker *broker, const struct op_refusal *refusal)
{
    (void)broker;
    if (!refusal->status || !refusal->sentence[0] || !refusal->shortage)
        abort();
    fake.refused++;
}

void op_refusal_counted(struct broker *broker, uint32_t status)
{
    (void)broker;
    if (!status)
        abort();
    fake.counted++;
}

void op_replied(struct broker *broker, uint16_t method, uint64_t ns)
{
    (void)broker;
    (void)ns;
    if (!method)
        abort();
    fake.replied++;
}

void op_noted(struct broker *broker, uint64_t session, const struct op_note *note)
{
    fake.noted = note->method;
    fake.noted_buffer = note->buffer;
    (void)snprintf(fake.noted_name, sizeof(fake.noted_name), "%s", note->name ? note->name : "");
}

void op_cancel(struct op *op)
{
    fake.cancelled++;
    (void)op;
}

int op_hello(struct op *op, const struct hello_args *args, struct hello_result *result)
{
    static uint64_t sessions;

    fake.connection = args->connection;
    *result = (struct hello_result){.session = ++sessions,
                                    .broker_id = 77,
                                    .arena_base = 0x566000000000,
                                    .arena_size = 1 << 30,
                                    .base_page = 4096,
                                    .release_log = args->release_log};
    return operation(op, "hello");
}

int op_goodbye(struct op *op)
{
    return operation(op, "goodbye");
}

int op_subscribe(struct op *op, uint32_t mask)
{
    fake.mask = mask;
    return operation(op, "subscribe");
}

int op_subscribe_to(struct op *op, uint32_t mask, uint64_t buffer, const char *name)
{
    fake.mask = mask;
    return operation(op, "subscribe_to");
}

int op_open_fds(struct op *op, const struct fd_list *list, struct fdset *opened, struct statuses *result,
                struct fdset *fds)
{
    fake.list = *list;
    fake.openings++;
    if (fake.open_status == STATUS_NO_DESCRIPTORS)
        return refuse(&op->problem, fake.open_status, "there are none");
    result->n = list->n;
    for (uint32_t i = 0; i < list->n; i++) {
        int fd = opened ? fdset_steal(opened, i) : -1;

        result->status[i] = i == fake.open_fails_at ? fake.open_status : 0;
        if (result->status[i])
            problem_set(&op->problem, "buffer %llu has ended", (unsigned long long)list->items[i].buffer);
        else
            (void)fdset_push(fds, fd >= 0 ? fd : memfd_create("fake", MFD_CLOEXEC));
    }
    return 0;
}

static void fill(struct opened *result, uint32_t n)
{
    result->n = n;
    for (uint32_t i = 0; i < n; i++)
        result->items[i] =
            (struct opened_item){.rights = 15, .id = 100 + i, .size = 10, .bytes = 4096, .granule = 4096};
    result->with_fds = fake.with_fds;
    fdset_init(&result->fds);
    for (unsigned i = 0; i < fake.n_opened; i++)
        (void)fdset_push(&result->fds, memfd_create("opened", MFD_CLOEXEC));
}

int op_alloc(struct op *op, const struct alloc_spec *args, struct opened *result)
{
    fake.alloc = *args;
    fill(result, args->n);
    return operation(op, "alloc");
}

int op_release(struct op *op, const struct ids *buffers, struct statuses *result)
{
    result->n = buffers->n;
    fake.released = *buffers;
    return operation(op, "release");
}

int op_export(struct op *op, const struct export_args *args, struct statuses *result)
{
    fake.export = *args;
    result->n = args->buffers.n;
    return operation(op, "export");
}

int op_import(struct op *op, const struct handle_shown *shown, uint32_t n, struct opened *result)
{
    fake.imported = n;
    result->n = n;
    for (uint32_t i = 0; i < result->n; i++)
        result->items[i] = (struct opened_item){.status = STATUS_FD_FOREIGN, .id = 9};
    return operation(op, "import");
}

int op_adopt(struct op *op, int fd, struct opened *result)
{
    fake.imported = fd >= 0;
    fill(result, 1);
    result->with_fds = false;
    return operation(op, "adopt");
}

int op_open(struct op *op, const struct open_args *args, struct opened *result)
{
    fake.open = *args;
    fill(result, args->n);
    return operation(op, "open");
}

int op_lookup(struct op *op, const struct lookup_args *args, struct opened *result)
{
    fake.lookup = *args;
    fill(result, 1);
    return operation(op, "lookup");
}

int op_share(struct op *op, const struct share_args *args, struct share_result *result)
{
    fake.share = *args;
    result->n = args->buffers.n;
    memset(result->tokens, 0xaa, sizeof(result->tokens));
    result->status[0] = STATUS_NO_RIGHT;
    return operation(op, "share");
}

int op_revoke(struct op *op, const struct revoke_args *args, uint32_t *revoked)
{
    fake.revoke = *args;
    *revoked = 1;
    return operation(op, "revoke");
}

int op_name_bind(struct op *op, const struct name_args *args)
{
    fake.name = *args;
    return operation(op, "name_bind");
}

int op_name_unbind(struct op *op, const char *name)
{
    snprintf(fake.unbound, sizeof(fake.unbound), "%s", name);
    return operation(op, "name_unbind");
}

int op_publish(struct op *op, uint64_t buffer, bool future_only)
{
    return operation(op, "publish");
}

int op_discard(struct op *op, uint64_t buffer, uint64_t offset, uint64_t length)
{
    return operation(op, "discard");
}

int op_move(struct op *op, uint64_t buffer, uint32_t node)
{
    return operation(op, "move");
}

int op_destroy(struct op *op, uint64_t buffer, bool force)
{
    return operation(op, "destroy");
}

static void widest(struct buffer_info *info, uint64_t id)
{
    *info = (struct buffer_info){.id = id, .size = UINT64_MAX, .bytes = UINT64_MAX, .n_nodes = 64, .n_holders = 16};
    memset(info->pool, 'p', sizeof(info->pool) - 1);
    memset(info->name, 'n', sizeof(info->name) - 1);
    for (unsigned i = 0; i < 64; i++) {
        info->nodes[i] = i;
        info->node_bytes[i] = UINT64_MAX;
    }
    for (unsigned i = 0; i < 16; i++) {
        info->holders[i] = UINT64_MAX;
        info->holder_rights[i] = UINT32_MAX;
    }
}

int op_info(struct op *op, uint64_t buffer, struct buffer_info *result)
{
    widest(result, buffer);
    return operation(op, "info");
}

int op_reserve(struct op *op, uint64_t size, uint64_t alignment, uint64_t address, uint64_t *ret_id,
               uint64_t *ret_address)
{
    *ret_id = 5;
    *ret_address = 0x566000000000;
    return operation(op, "reserve");
}

int op_unreserve(struct op *op, uint64_t reservation)
{
    return operation(op, "unreserve");
}

int op_place(struct op *op, uint64_t buffer, uint64_t reservation, uint64_t offset)
{
    return operation(op, "place");
}

static void fill_row(enum list_kind kind, uint64_t id, union list_row *row)
{
    memset(row, 0, sizeof(*row));
    switch (kind) {
    case LIST_NODES:
        row->node.node = (uint32_t)id;
        return;
    case LIST_POOLS:
        row->pool.used = id;
        return;
    case LIST_BUFFERS:
        widest(&row->buffer, id);
        return;
    case LIST_SESSIONS:
        row->session.id = id;
        return;
    case LIST_RESERVATIONS:
        row->reservation.id = id;
        return;
    case LIST_NAMES:
        memset(row->name.name, 'n', sizeof(row->name.name) - 1);
        row->name.buffer = id;
        return;
    case LIST_TOKENS:
        row->token.serial = id;
        return;
    case LIST_HISTORY:
        memset(row->history_entry.sentence, 's', sizeof(row->history_entry.sentence) - 1);
        row->history_entry.serial = id;
        return;
    case LIST_LIMITS:
        row->limit.used = id;
        return;
    }
}

/* records 1 to n_records; the cursor is the next one's number */
int op_list(struct op *op, enum list_kind kind, const struct list_args *args, uint64_t *ret_next,
            bool (*item)(void *userdata, const union list_row *row))
{
    static const char *const names[] = {
#define X(NAME, name, row, Row, Reply) "list_" #name,
        MEMORYD_LISTINGS(X)
#undef X
    };

    for (uint64_t i = args->cursor ? args->cursor : 1; i <= fake.n_records; i++) {
        union list_row row;

        fill_row(kind, i, &row);
        if (!item(args->userdata, &row)) {
            *ret_next = i;
            return operation(op, names[kind]);
        }
    }
    *ret_next = 0;
    return operation(op, names[kind]);
}

int op_select_buffers(struct op *op, const struct select_args *args, struct select_result *result)
{
    fake.select = *args;
    *result = (struct select_result){.n = 0};
    for (uint64_t id = args->after + 1; id <= fake.n_records && result->n < args->most; id++)
        result->ids[result->n++] = id;
    result->more = args->after + result->n < fake.n_records;
    result->sums = (struct select_sums){.buffers = fake.n_records, .bytes = 2, .holds = 3};
    return operation(op, "select_buffers");
}

bool op_selected(struct op *op, uint64_t id, uint64_t holder, struct buffer_info *result)
{
    widest(result, id);
    return id != fake.ended;
}

int op_status(struct op *op, struct status_info *result)
{
    *result = (struct status_info){.broker_id = 77, .simulated = true};
    return operation(op, "status");
}

int op_check(struct op *op, struct check_result *result)
{
    result->n_sentences = 1;
    snprintf(result->sentences[0], sizeof(result->sentences[0]), "one is not two");
    return operation(op, "check");
}

int op_reload(struct op *op, struct reload_result *result)
{
    *result = fake.reload;
    return operation(op, "reload");
}

int op_upgrade(struct op *op)
{
    return operation(op, "upgrade");
}

/* ---- the broker as app/ sees it: enough to start and stop -------------------------------------------------------- */

int broker_new(struct broker **ret, const struct broker_options *options)
{
    fake_reset();
    fake.host = options->host;
    *ret = (struct broker *)&fake;
    return 0;
}

void broker_commit(struct broker *broker)
{
    (void)broker;
}

int broker_tick(struct broker *broker)
{
    return 0;
}

int broker_watch_fd(struct broker *broker)
{
    static int ends[2];

    return ends[0] || pipe2(ends, O_CLOEXEC) == 0 ? ends[0] : -1;
}

int broker_watch_ready(struct broker *broker)
{
    return 0;
}

int broker_session_exited(struct broker *broker, uint64_t session)
{
    return 0;
}

int broker_connection_lost(struct broker *broker, uint64_t session, void *connection)
{
    fake.lost++;
    return 0;
}

bool broker_is_idle(const struct broker *broker)
{
    return true;
}

void broker_announce_shutdown(struct broker *broker) {}

bool broker_next_release_log(struct broker *broker, uint64_t *cursor, struct broker_release_log *ret)
{
    if (*cursor == fake.n_releases)
        return false;
    *ret = fake.releases[(*cursor)++];
    return true;
}

void broker_set_limits(struct broker *broker, const struct account_limits *limits) {}
