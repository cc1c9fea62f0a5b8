/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HELLO, GOODBYE, PING, SUBSCRIBE; STATUS, CHECK, UPGRADE and RELOAD.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/steal.h"
#include "rpc/reply.h"
#include "rpc/request.h"

struct hello_request {
    struct request request;
    struct hello_args args;
    struct hello_result result;
    uint32_t version; /* the minor one that both speak */
};

static void answer_hello(struct request *request)
{
    struct hello_request *hello = (struct hello_request *)request;
    const struct hello_result *result = &hello->result;
    struct rpc_client *client = request->call.client;
    Memoryd__V1__HelloReply reply = MEMORYD__V1__HELLO_REPLY__INIT;
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;

    client->session = result->session;
    client->minor = hello->version;
    client->keeps = op_acknowledge(client->rpc->broker, client->session, request->call.acknowledged, 0);
    client->rpc->transport->established(client->connection);
    reply.version = hello->version;
    reply.session = result->session;
    reply.secret.data = hello->result.secret;
    reply.secret.len = sizeof(hello->result.secret);
    reply.broker = result->broker_id;
    reply.arena_base = result->arena_base;
    reply.arena_size = result->arena_size;
    reply.base_page = result->base_page;
    reply.broker_uid = result->broker_uid;
    reply.simulated = result->simulated;
    if (result->release_log >= 0)
        (void)fdset_push(&fds, steal_fd(&hello->result.release_log));
    reply.nodes = result->n_nodes;
    request_reply(request, &reply.base, &fds);
}

static void wipe_hello(struct request *request)
{
    struct hello_request *hello = (struct hello_request *)request;

    hello->result.release_log = fd_close(hello->result.release_log);
    explicit_bzero(hello->args.secret, sizeof(hello->args.secret));
    explicit_bzero(hello->result.secret, sizeof(hello->result.secret));
}

static bool ranges_meet(uint32_t min_a, uint32_t max_a, uint32_t min_b, uint32_t max_b)
{
    return min_a <= max_b && min_b <= max_a;
}

int serve_hello(const struct call *call, const Memoryd__V1__HelloRequest *m)
{
    struct problem problem = PROBLEM_NULL;
    struct hello_request *hello;

    if (!ranges_meet(m->version_min, m->version_max, MEMORYD_MINOR_MIN, MEMORYD_MINOR_MAX)) {
        problem_set(&problem, "the client speaks versions 1.%u to 1.%u and this broker 1.%d to 1.%d; install the same "
                    "release of both", m->version_min, m->version_max, MEMORYD_MINOR_MIN, MEMORYD_MINOR_MAX);
        return call_refuse(call, STATUS_VERSION, &problem);
    }
    hello = request_begin(call, sizeof(*hello), answer_hello, wipe_hello);
    if (!hello)
        return 0;
    hello->version = m->version_max < MEMORYD_MINOR_MAX ? m->version_max : MEMORYD_MINOR_MAX;
    hello->args.peer = call->client->peer;
    hello->args.connection = call->client->connection;
    hello->args.resume = m->session;
    hello->args.release_log = m->release_log;
    hello->args.administrator = m->administrator;
    hello->args.crowded = call->client->crowded;
    hello->result.release_log = -1;
    if (m->secret.len)
        memcpy(hello->args.secret, m->secret.data, sizeof(hello->args.secret));
    memcpy(hello->args.program, m->program, strlen(m->program) + 1);
    hello->args.n_occupied = (unsigned)m->n_occupied_addresses;
    for (unsigned i = 0; i < hello->args.n_occupied; i++) {
        hello->args.occupied_by[i] = m->occupied_brokers[i];
        hello->args.occupied[i] = (struct range){.start = m->occupied_addresses[i], .size = m->occupied_sizes[i]};
    }
    return request_go(&hello->request, op_hello(&hello->request.op, &hello->args, &hello->result));
}

static void answer_goodbye(struct request *request)
{
    request_done(request);
    rpc_client_disconnect(request->call.client);
}

int serve_goodbye(const struct call *call, const Memoryd__V1__GoodbyeRequest *m)
{
    struct request *request = request_begin(call, sizeof(*request), answer_goodbye, NULL);

    if (!request)
        return 0;
    return request_go(request, op_goodbye(&request->op));
}

int serve_ping(const struct call *call, const Memoryd__V1__PingRequest *m)
{
    return call_done(call);
}

int serve_subscribe(const struct call *call, const Memoryd__V1__SubscribeRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_subscribe(&request->op, m->mask)) : 0;
}

struct status_request {
    struct request request;
    struct status_info result;
};

static void answer_status(struct request *request)
{
    const struct status_info *s = &((struct status_request *)request)->result;
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
    request_reply(request, &reply.base, NULL);
}

int serve_status(const struct call *call, const Memoryd__V1__StatusRequest *m)
{
    struct status_request *request = request_begin(call, sizeof(*request), answer_status, NULL);

    if (!request)
        return 0;
    return request_go(&request->request, op_status(&request->request.op, &request->result));
}

struct check_request {
    struct request request;
    struct check_result result;
};

static void answer_check(struct request *request)
{
    struct check_result *result = &((struct check_request *)request)->result;
    char *sentences[MEMORYD_CHECK_SENTENCES_MAX];
    Memoryd__V1__CheckReply reply = MEMORYD__V1__CHECK_REPLY__INIT;

    for (uint32_t i = 0; i < result->n_sentences; i++)
        sentences[i] = result->sentences[i];
    reply.buffers = result->buffers;
    reply.records = result->records;
    reply.faults = result->faults;
    reply.n_sentences = result->n_sentences;
    reply.sentences = sentences;
    request_reply(request, &reply.base, NULL);
}

int serve_check(const struct call *call, const Memoryd__V1__CheckRequest *m)
{
    struct check_request *request = request_begin(call, sizeof(*request), answer_check, NULL);

    if (!request)
        return 0;
    return request_go(&request->request, op_check(&request->request.op, &request->result));
}

int serve_upgrade(const struct call *call, const Memoryd__V1__UpgradeRequest *m)
{
    struct request *request = request_begin_plain(call);

    return request ? request_go(request, op_upgrade(&request->op)) : 0;
}

struct reload_request {
    struct request request;
    struct reload_result result;
};

/* The lines of one kind, and how many more there were. */
static size_t take_lines(struct reload_result *result, enum reload_what what, char **lines)
{
    struct reload_line *last = NULL;
    size_t n = 0;

    for (unsigned i = 0; i < result->n_lines; i++)
        if (result->lines[i].what == what) {
            last = &result->lines[i];
            lines[n++] = reply_text(last->text);
        }
    if (last && n < result->n_of[what])
        (void)snprintf(last->text, sizeof(last->text), "and %zu more", result->n_of[what] - n + 1);
    return n;
}

static void answer_reload(struct request *request)
{
    struct reload_result *result = &((struct reload_request *)request)->result;
    char *lines[RELOAD_WHATS][RELOAD_LINES_MAX];
    Memoryd__V1__ReloadReply reply = MEMORYD__V1__RELOAD_REPLY__INIT;

    reply.config = reply_text(result->path);
    reply.n_applied = take_lines(result, RELOAD_APPLIED, reply.applied = lines[RELOAD_APPLIED]);
    reply.n_restart = take_lines(result, RELOAD_RESTART, reply.restart = lines[RELOAD_RESTART]);
    reply.n_mistakes = take_lines(result, RELOAD_MISTAKE, reply.mistakes = lines[RELOAD_MISTAKE]);
    request_reply(request, &reply.base, NULL);
}

int serve_reload(const struct call *call, const Memoryd__V1__ReloadRequest *m)
{
    struct reload_request *request = request_begin(call, sizeof(*request), answer_reload, NULL);

    if (!request)
        return 0;
    return request_go(&request->request, op_reload(&request->request.op, &request->result));
}
