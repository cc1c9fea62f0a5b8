/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HELLO, GOODBYE, PING, SUBSCRIBE, SUBSCRIBE_TO; STATUS, CHECK, UPGRADE and RELOAD.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "rpc/request.h"

void answer_HelloReply(struct request *request)
{
    struct hello_result *result = &request->result.HelloReply;
    struct rpc_client *client = request->call.client;
    Memoryd__V1__HelloReply reply = MEMORYD__V1__HELLO_REPLY__INIT;
    struct fd_list list;

    client->session = result->session;
    client->minor = request->args.hello.version;
    client->keeps = op_acknowledge(client->rpc->broker, client->session, request->call.acknowledged, 0);
    client->rpc->transport->established(client->connection);
    reply.version = client->minor;
    reply.session = result->session;
    reply.secret.data = result->secret;
    reply.secret.len = sizeof(result->secret);
    reply.broker = result->broker_id;
    reply.arena_base = result->arena_base;
    reply.arena_size = result->arena_size;
    reply.base_page = result->base_page;
    reply.broker_uid = result->broker_uid;
    reply.simulated = result->simulated;
    reply.nodes = result->n_nodes;
    fd_list_init(&list, result->session);
    list.release_log = result->release_log;
    list.n = result->release_log;
    reply_with_fds(&request->call, &reply.base, &list, NULL);
}

static void release_hello(struct request *request)
{
    struct hello_result *result = &request->result.HelloReply;

    explicit_bzero(request->args.hello.args.secret, sizeof(request->args.hello.args.secret));
    explicit_bzero(result->secret, sizeof(result->secret));
}

static bool ranges_meet(uint32_t min_a, uint32_t max_a, uint32_t min_b, uint32_t max_b)
{
    return min_a <= max_b && min_b <= max_a;
}

int serve_hello(struct request *request, const Memoryd__V1__HelloRequest *m)
{
    struct hello_args *args = &request->args.hello.args;

    if (!ranges_meet(m->version_min, m->version_max, MEMORYD_MINOR_MIN, MEMORYD_MINOR_MAX))
        return refuse(&request->op.problem, STATUS_VERSION,
                      "the client speaks versions 1.%u to 1.%u and this broker 1.%d to 1.%d; install the same release "
                      "of both",
                      m->version_min, m->version_max, MEMORYD_MINOR_MIN, MEMORYD_MINOR_MAX);
    request->release = release_hello;
    request->args.hello.version = m->version_max < MEMORYD_MINOR_MAX ? m->version_max : MEMORYD_MINOR_MAX;
    *args = (struct hello_args){
        .peer = request->call.client->peer,
        .connection = request->call.client->connection,
        .resume = m->session,
        .release_log = m->release_log,
        .administrator = m->administrator,
        .n_occupied = (unsigned)m->n_occupied_addresses,
    };
    if (m->secret.len)
        memcpy(args->secret, m->secret.data, sizeof(args->secret));
    memcpy(args->program, m->program, strlen(m->program) + 1);
    for (unsigned i = 0; i < args->n_occupied; i++) {
        args->occupied_by[i] = m->occupied_brokers[i];
        args->occupied[i] = (struct range){.start = m->occupied_addresses[i], .size = m->occupied_sizes[i]};
    }
    return op_hello(&request->op, args, &request->result.HelloReply);
}

int serve_goodbye(struct request *request, const Memoryd__V1__GoodbyeRequest *m)
{
    return op_goodbye(&request->op);
}

int serve_ping(struct request *request, const Memoryd__V1__PingRequest *m)
{
    return 0;
}

int serve_subscribe(struct request *request, const Memoryd__V1__SubscribeRequest *m)
{
    return op_subscribe(&request->op, m->mask);
}

int serve_subscribe_to(struct request *request, const Memoryd__V1__SubscribeToRequest *m)
{
    return op_subscribe_to(&request->op, m->mask, m->buffer, m->name);
}

void answer_Done(struct request *request)
{
    Memoryd__V1__Done done = MEMORYD__V1__DONE__INIT;

    reply_message(&request->call, &done.base);
    if (request->call.method == METHOD_GOODBYE)
        rpc_client_disconnect(request->call.client);
}

int serve_status(struct request *request, const Memoryd__V1__StatusRequest *m)
{
    return op_status(&request->op, &request->result.StatusReply);
}

void answer_StatusReply(struct request *request)
{
    const struct status_info *s = &request->result.StatusReply;
    const struct rpc *rpc = request->call.rpc;
    Memoryd__V1__StatusReply reply = MEMORYD__V1__STATUS_REPLY__INIT;

    reply.version = (char *)(uintptr_t)rpc->version;
    reply.broker = s->broker_id;
    reply.broker_pid = (uint32_t)getpid();
    reply.keeper_pid = (uint32_t)rpc->keeper_pid;
    reply.restarts = s->restarts;
    reply.quarantined = s->quarantined;
    reply.broker_uid = s->broker_uid;
    reply.uptime_ms = s->uptime_ms;
    reply.sessions = s->sessions;
    reply.buffers = s->buffers;
    reply.buffers_detached = s->buffers_detached;
    reply.buffers_ending = s->buffers_ending;
    reply.bytes = s->bytes;
    reply.names = s->names;
    reply.tokens = s->tokens;
    reply.reservations = s->reservations;
    reply.fds = s->fds;
    reply.fds_limit = s->fds_limit;
    reply.requests = rpc->requests;
    reply.refused = rpc->refused;
    reply.simulated = s->simulated;
    reply.arena_base = s->arena_base;
    reply.arena_size = s->arena_size;
    reply.config = (char *)(uintptr_t)rpc->config;
    reply.config_stale = rpc->config_stale;
    reply.pools = s->held.pools;
    reply.capacity = s->held.capacity;
    reply.used = s->held.used;
    reply_message(&request->call, &reply.base);
}

int serve_check(struct request *request, const Memoryd__V1__CheckRequest *m)
{
    return op_check(&request->op, &request->result.CheckReply);
}

void answer_CheckReply(struct request *request)
{
    struct check_result *result = &request->result.CheckReply;
    char *sentences[MEMORYD_CHECK_SENTENCES_MAX];
    Memoryd__V1__CheckReply reply = MEMORYD__V1__CHECK_REPLY__INIT;

    for (uint32_t i = 0; i < result->n_sentences; i++)
        sentences[i] = result->sentences[i];
    reply.buffers = result->buffers;
    reply.records = result->records;
    reply.faults = result->faults;
    reply.n_sentences = result->n_sentences;
    reply.sentences = sentences;
    reply_message(&request->call, &reply.base);
}

int serve_upgrade(struct request *request, const Memoryd__V1__UpgradeRequest *m)
{
    request_note(request, 0, NULL);
    return op_upgrade(&request->op);
}

int serve_reload(struct request *request, const Memoryd__V1__ReloadRequest *m)
{
    request_note(request, 0, NULL);
    return op_reload(&request->op, &request->result.ReloadReply);
}

/* Collects the lines of one kind; the last one says how many there is no room for. */
static size_t take_lines(struct reload_result *result, enum reload_what what, char **lines)
{
    struct reload_line *last = NULL;
    size_t n = 0;

    for (unsigned i = 0; i < result->n_lines; i++)
        if (result->lines[i].what == what) {
            last = &result->lines[i];
            lines[n++] = printable_escape(last->text, sizeof(last->text));
        }
    if (last && n < result->n_of[what])
        (void)snprintf(last->text, sizeof(last->text), "and %zu more", result->n_of[what] - n + 1);
    return n;
}

void answer_ReloadReply(struct request *request)
{
    struct reload_result *result = &request->result.ReloadReply;
    char *lines[RELOAD_WHATS][RELOAD_LINES_MAX];
    Memoryd__V1__ReloadReply reply = MEMORYD__V1__RELOAD_REPLY__INIT;

    reply.config = printable_escape(result->path, sizeof(result->path));
    reply.n_applied = take_lines(result, RELOAD_APPLIED, reply.applied = lines[RELOAD_APPLIED]);
    reply.n_restart = take_lines(result, RELOAD_RESTART, reply.restart = lines[RELOAD_RESTART]);
    reply.n_mistakes = take_lines(result, RELOAD_MISTAKE, reply.mistakes = lines[RELOAD_MISTAKE]);
    reply_message(&request->call, &reply.base);
}
