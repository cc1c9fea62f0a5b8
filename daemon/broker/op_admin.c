/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations about the broker itself: STATUS, RELOAD, UPGRADE.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "broker/lookup.h"
#include "broker/recover.h"
#include "broker/state.h"
#include "history/counters.h"
#include "keeper/link.h"
#include "log/log.h"

/* Since 6.2 the size of that folder is the number of descriptors that the process has. */
static uint64_t count_fds(const struct broker *broker)
{
    struct stat st;

    if (!stat("/proc/self/fd", &st) && st.st_size > 0)
        return (uint64_t)st.st_size;
    /* one for each buffer, three for each client: connection, process, release log */
    return table_count(&broker->buffers.table) + 3 * table_count(&broker->sessions.table);
}

int op_status(struct op *op, struct status_info *result)
{
    struct broker *broker = op->broker;
    struct session *session;
    struct rlimit limit = {.rlim_cur = 0};
    int r = op_session(op, &session);

    if (r)
        return r;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    *result = (struct status_info){
        .broker_id = ledger_broker_id(broker->ledger),
        .broker_uid = broker->options.uid,
        .uptime_ms = (clock_now_ns() - broker->started) / NSEC_PER_MSEC,
        .sessions = table_count(&broker->sessions.table),
        .buffers = table_count(&broker->buffers.table) - broker->buffers.n_detached - broker->buffers.n_ending -
                   broker->buffers.n_stock,
        .buffers_detached = broker->buffers.n_detached,
        .buffers_ending = broker->buffers.n_ending,
        .bytes = broker->buffers.bytes,
        .names = table_count(&broker->names.table),
        .tokens = table_count(&broker->tokens.table),
        .reservations = table_count(&broker->reservations.table),
        .fds = count_fds(broker),
        .fds_limit = limit.rlim_cur,
        .simulated = broker->options.topology->simulated,
        .restarts = ledger_header(broker->ledger)->starts - 1,
        .quarantined = quarantined_records(broker),
        .arena_base = broker->arena.base,
        .arena_size = broker->arena.size,
    };
    broker_sum_pools(broker, &result->held);
    return 0;
}

void broker_figures(const struct broker *broker, struct broker_figures *ret)
{
    struct rlimit limit = {.rlim_cur = 0};

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    *ret = (struct broker_figures){
        .topology = broker->options.topology,
        .pools = broker->options.pools,
        .accounts = &broker->accounts,
        .counters = broker->counters->file,
        .tokens = table_count(&broker->tokens.table),
        .reservations = table_count(&broker->reservations.table),
        .quarantined = quarantined_records(broker),
        .fds = count_fds(broker),
        .fds_limit = limit.rlim_cur,
    };
    broker_holdings(broker, &ret->holdings);
}

int op_reload(struct op *op, struct reload_result *result)
{
    struct broker *broker = op->broker;
    const struct broker_host *host = broker->options.host;
    struct session *session;
    int r = op_session(op, &session);

    if (r)
        return r;
    if (!is_admin(broker, session))
        return refuse(&op->problem, STATUS_NOT_ADMIN, "only root and uid %u may have the configuration read again",
                      (unsigned)broker->options.uid);
    if (!host->reload)
        return refuse(&op->problem, STATUS_NOT_SUPPORTED, "this broker has no configuration");
    log_client(LOG_LEVEL_NOTICE, (struct log_client){session->record->uid, (pid_t)session->record->pid},
               "has the configuration read again");
    host->reload(host->userdata, result);
    return 0;
}

struct upgrade {
    struct op_state state;
    struct list link; /* in broker->upgrades */
};

static void upgrade_end(struct upgrade *upgrade, int status)
{
    list_remove(&upgrade->link);
    pending_end(&upgrade->state, status);
    free(upgrade);
}

static void upgrade_cancelled(struct op_state *state)
{
    upgrade_end(container_of(state, struct upgrade, state), state->cancel_status);
}

static void upgrade_cancel(struct op_state *state)
{
    pending_call_at(state, 0, upgrade_cancelled);
}

void broker_upgrade_decided(struct broker *broker, int error, const char *why)
{
    list_for_each_entry_safe(upgrade, &broker->upgrades, struct upgrade, link) {
        int status = !error ? 0
                     : error == ESHUTDOWN
                         ? refuse(&upgrade->state.op->problem, STATUS_SHUTTING_DOWN, "the broker is stopping")
                         : refuse(&upgrade->state.op->problem, STATUS_NOT_SUPPORTED,
                                  "no upgrade to the program that is installed: %s; the one that runs goes on, and its "
                                  "log says more",
                                  why ? why : strerror(error));

        upgrade_end(upgrade, status);
    }
    broker_commit(broker);
}

int op_upgrade(struct op *op)
{
    struct broker *broker = op->broker;
    struct session *session;
    const struct broker_host *host = broker->options.host;
    struct upgrade *upgrade;
    int r = op_session(op, &session);

    if (r)
        return r;
    if (!is_admin(broker, session))
        return refuse(&op->problem, STATUS_NOT_ADMIN, "only root and uid %u may have the broker upgraded",
                      (unsigned)broker->options.uid);
    if (!broker->options.keeper)
        return refuse(&op->problem, STATUS_NOT_SUPPORTED, "this broker has no keeper that could start another one");
    log_client(LOG_LEVEL_NOTICE, (struct log_client){session->record->uid, (pid_t)session->record->pid},
               "asks for an upgrade");
    r = host->check_config ? host->check_config(host->userdata, &op->problem) : 0;
    if (r)
        return r;
    upgrade = calloc(1, sizeof(*upgrade));
    if (!upgrade)
        return refuse(&op->problem, STATUS_NO_MEMORY, "the broker has no memory to wait for the answer");
    list_append(&broker->upgrades, &upgrade->link);
    pending_begin(&broker->pending, &upgrade->state, op, upgrade_cancel);
    keeper_link_send(broker->options.keeper, PACKET_UPGRADE);
    return OP_PENDING;
}
