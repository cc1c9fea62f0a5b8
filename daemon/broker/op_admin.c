/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker about itself.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "broker/internal.h"
#include "keeper/link.h"
#include "log/log.h"

/* Kernels since 6.2 say how many descriptors a process has by the size of that folder. */
static uint64_t count_fds(const struct broker *broker)
{
    struct stat st;

    if (!stat("/proc/self/fd", &st) && st.st_size > 0)
        return (uint64_t)st.st_size;
    /* one for each buffer, two for each client */
    return table_count(&broker->buffers.table) + 2 * table_count(&broker->sessions.table);
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
        .buffers = table_count(&broker->buffers.table) - broker->buffers.n_detached,
        .buffers_detached = broker->buffers.n_detached,
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
    return 0;
}

int op_upgrade(struct op *op)
{
    struct broker *broker = op->broker;
    struct session *session;
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
    keeper_tell_upgrade(broker->options.keeper);
    return 0;
}
