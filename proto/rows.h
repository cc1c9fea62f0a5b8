/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the listings, field by field.
 *
 * A row travels through three forms: a plain struct in the broker (broker/operations.h), a message of memoryd.proto,
 * and a struct of memclient.h. The tables below make the first form and fill the other two (rpc/serve_list.c in the
 * daemon, rpc/stubs_list.c and rpc/convert.h in the client). A new field is a line here, in the message and in the
 * struct of the library; the compiler checks that they agree.
 *
 * Each line of a table is one X(form, name, ...), where `name` is the field in the message and in the plain struct:
 *
 *     NUMBER, name, type                a number, a boolean or an enum
 *     RENAMED, name, type, public       a number that has another name in the library
 *     TEXT, name, size                  a string of less than `size` bytes
 *     COUNT, name                       the number of elements of arrays that name it; a message has one for each array
 *     NUMBERS, name, type, max, count   an array of numbers
 *
 * The code that expands a table defines what each form becomes:
 *
 *     #define PACK(form, ...) PACK_##form(__VA_ARGS__)
 *     #define PACK_NUMBER(name, type) message->name = row->name;
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

/* X(NAME, name, row, Row, Reply): which listings there are. METHOD_LIST_<NAME> asks for one; `Row` and `Reply` are
 * message names of package memoryd.v1. */
/* clang-format off */
#define MEMORYD_LISTINGS(X)                                                               \
    X(NODES,        nodes,        node,        NodeInfo,        NodesReply)                     \
    X(POOLS,        pools,        pool,        PoolInfo,        PoolsReply)                     \
    X(BUFFERS,      buffers,      buffer,      BufferInfo,      BuffersReply)                   \
    X(SESSIONS,     sessions,     session,     SessionInfo,     SessionsReply)                  \
    X(RESERVATIONS, reservations, reservation, ReservationInfo, ReservationsReply)              \
    X(NAMES,        names,        name,        NameInfo,        NamesReply)                     \
    X(TOKENS,       tokens,       token,       TokenInfo,       TokensReply)                    \
    X(HISTORY,      history,      history_entry, HistoryEntry,  HistoryReply)                   \
    X(LIMITS,       limits,       limit,       LimitInfo,       LimitsReply)
/* clang-format on */

enum list_kind {
#define X(NAME, name, row, Row, Reply) LIST_##NAME,
    MEMORYD_LISTINGS(X)
#undef X
};

#define MEMORYD_ROW_node(X)       \
    X(NUMBER, node, uint32_t)     \
    X(NUMBER, physical, uint32_t) \
    X(NUMBER, total, uint64_t)    \
    X(NUMBER, capacity, uint64_t) \
    X(NUMBER, used, uint64_t)     \
    X(NUMBER, has_cpus, bool)     \
    X(COUNT, n_distances)         \
    X(NUMBERS, distances, uint32_t, MEMORYD_NODES_MAX, n_distances)

#define MEMORYD_ROW_pool(X)                                     \
    X(TEXT, name, MEMORYD_POOL_NAME_MAX + 1)                    \
    X(COUNT, n_nodes)                                           \
    X(NUMBERS, nodes, uint32_t, MEMORYD_NODES_MAX, n_nodes)     \
    X(NUMBER, pages, uint32_t) /* Pages */                      \
    X(NUMBER, page_size, uint64_t)                              \
    X(NUMBER, granule, uint64_t)                                \
    X(NUMBER, placement, uint32_t) /* Placement */              \
    X(NUMBER, part_size, uint64_t)                              \
    X(COUNT, n_weights)                                         \
    X(NUMBERS, weights, uint32_t, MEMORYD_NODES_MAX, n_weights) \
    X(NUMBER, lazy, bool)                                       \
    X(NUMBER, declared, bool)                                   \
    X(NUMBER, capacity, uint64_t)                               \
    X(NUMBER, used, uint64_t)                                   \
    X(NUMBER, available, uint64_t)                              \
    X(NUMBER, buffers, uint64_t)                                \
    X(NUMBER, stock, uint64_t)                                  \
    X(NUMBER, stock_buffers, uint64_t)                          \
    X(NUMBER, stock_ready, uint64_t)                            \
    X(TEXT, allow, MEMORYD_POOL_ALLOW_MAX + 1)                  \
    X(NUMBER, client_charged, bool)

#define MEMORYD_ROW_buffer(X)                                                       \
    X(NUMBER, id, uint64_t)                                                         \
    X(NUMBER, state, uint32_t) /* BufferState */                                    \
    X(NUMBER, flags, uint32_t) /* BufferInfo.Flag */                                \
    X(RENAMED, size, uint64_t, length)                                              \
    X(NUMBER, bytes, uint64_t)                                                      \
    X(TEXT, pool, MEMORYD_POOL_NAME_MAX + 1)                                        \
    X(NUMBER, pages, uint32_t) /* Pages */                                          \
    X(NUMBER, page_size, uint64_t)                                                  \
    X(NUMBER, placement, uint32_t) /* Placement */                                  \
    X(COUNT, n_nodes)                                                               \
    X(NUMBERS, nodes, uint32_t, MEMORYD_NODES_MAX, n_nodes)                         \
    X(NUMBERS, node_bytes, uint64_t, MEMORYD_NODES_MAX, n_nodes)                    \
    X(NUMBER, huge_bytes, uint64_t)                                                 \
    X(NUMBER, uid, uid_t)                                                           \
    X(NUMBER, charged_uid, uid_t)                                                   \
    X(NUMBER, pid, pid_t)                                                           \
    X(NUMBER, inode, uint64_t)                                                      \
    X(NUMBER, address, uint64_t)                                                    \
    X(NUMBER, created_ms, uint64_t)                                                 \
    X(NUMBER, detached_ms, uint64_t)                                                \
    X(NUMBER, holds, uint32_t)                                                      \
    X(NUMBER, names, uint32_t)                                                      \
    X(NUMBER, tokens, uint32_t)                                                     \
    X(COUNT, n_holders)                                                             \
    X(NUMBERS, holders, uint64_t, MEMORYD_HOLDERS_MAX, n_holders)                   \
    X(NUMBERS, holder_rights, uint32_t, MEMORYD_HOLDERS_MAX, n_holders)             \
    X(NUMBERS, holder_claims, uint32_t, MEMORYD_HOLDERS_MAX, n_holders) /* Claim */ \
    X(NUMBERS, holder_cached, uint32_t, MEMORYD_HOLDERS_MAX, n_holders)             \
    X(NUMBERS, holder_since_ms, uint64_t, MEMORYD_HOLDERS_MAX, n_holders)           \
    X(NUMBER, seals, uint32_t)                                                      \
    X(TEXT, name, MEMORYD_NAME_MAX + 16) /* with "uid:N/" where it is another user's */

#define MEMORYD_ROW_session(X)                \
    X(NUMBER, id, uint64_t)                   \
    X(NUMBER, uid, uid_t)                     \
    X(NUMBER, gid, gid_t)                     \
    X(NUMBER, pid, pid_t)                     \
    X(TEXT, program, MEMORYD_PROGRAM_MAX + 1) \
    X(NUMBER, connected, bool)                \
    X(NUMBER, created_ms, uint64_t)           \
    X(NUMBER, bytes, uint64_t)                \
    X(NUMBER, holds, uint32_t)                \
    X(NUMBER, tokens, uint32_t)               \
    X(NUMBER, reservations, uint32_t)         \
    X(NUMBER, fds_in_flight, uint32_t)        \
    X(NUMBER, queued_bytes, uint32_t)         \
    X(NUMBER, waiting, uint32_t)              \
    X(NUMBER, requests, uint64_t)

#define MEMORYD_ROW_reservation(X)     \
    X(NUMBER, id, uint64_t)            \
    X(NUMBER, session, uint64_t)       \
    X(NUMBER, address, uint64_t)       \
    X(RENAMED, size, uint64_t, length) \
    X(NUMBER, buffers, uint32_t)       \
    X(NUMBER, uid, uid_t)

#define MEMORYD_ROW_name(X)                      \
    X(TEXT, name, MEMORYD_NAME_MAX + 1)          \
    X(NUMBER, uid, uid_t)                        \
    X(NUMBER, buffer, uint64_t)                  \
    X(NUMBER, policy, uint32_t) /* NamePolicy */ \
    X(NUMBER, keep_ms, uint64_t)                 \
    X(RENAMED, group, uint32_t, group_rights)    \
    X(NUMBER, gid, gid_t)                        \
    X(RENAMED, others, uint32_t, other_rights)   \
    X(NUMBER, session, uint64_t)

#define MEMORYD_ROW_token(X)                           \
    X(NUMBER, serial, uint64_t)                        \
    X(NUMBER, buffer, uint64_t)                        \
    X(NUMBER, rights, uint32_t)                        \
    X(NUMBER, flags, uint32_t) /* ShareRequest.Flag */ \
    X(NUMBER, uid, uid_t)                              \
    X(NUMBER, gid, gid_t)                              \
    X(NUMBER, pid, pid_t)                              \
    X(NUMBER, uses_left, uint32_t)                     \
    X(NUMBER, expires_ms, uint64_t)                    \
    X(NUMBER, maker_uid, uid_t)                        \
    X(NUMBER, session, uint64_t)

#define MEMORYD_ROW_history_entry(X)                  \
    X(NUMBER, serial, uint64_t)                       \
    X(NUMBER, kind, uint32_t) /* HistoryEntry.Kind */ \
    X(NUMBER, at_ms, uint64_t)                        \
    X(NUMBER, first_ms, uint64_t)                     \
    X(NUMBER, count, uint32_t)                        \
    X(NUMBER, uid, uid_t)                             \
    X(NUMBER, pid, pid_t)                             \
    X(NUMBER, session, uint64_t)                      \
    X(TEXT, program, MEMORYD_PROGRAM_MAX + 1)         \
    X(TEXT, method, MEMORYD_WORD_MAX + 1)             \
    X(TEXT, status, MEMORYD_WORD_MAX + 1)             \
    X(TEXT, sentence, MEMORYD_SENTENCE_MAX + 1)       \
    X(TEXT, resource, MEMORYD_WORD_MAX + 1)           \
    X(TEXT, pool, MEMORYD_POOL_NAME_MAX + 1)          \
    X(NUMBER, wanted, uint64_t)                       \
    X(NUMBER, used, uint64_t)                         \
    X(NUMBER, limit, uint64_t)                        \
    X(NUMBER, mine, uint64_t)                         \
    X(NUMBER, most_uid, uid_t)                        \
    X(NUMBER, most, uint64_t)                         \
    X(NUMBER, waited_ms, uint64_t)                    \
    X(NUMBER, end, uint32_t) /* HistoryEntry.End */   \
    X(NUMBER, exit_status, uint32_t)                  \
    X(NUMBER, began_ms, uint64_t)                     \
    X(NUMBER, bytes, uint64_t)                        \
    X(NUMBER, holds, uint32_t)                        \
    X(NUMBER, buffer, uint64_t)

#define MEMORYD_ROW_limit(X)                 \
    X(NUMBER, uid, uid_t)                    \
    X(TEXT, resource, MEMORYD_WORD_MAX + 1)  \
    X(TEXT, pool, MEMORYD_POOL_NAME_MAX + 1) \
    X(NUMBER, used, uint64_t)                \
    X(NUMBER, limit, uint64_t)               \
    X(NUMBER, available, uint64_t)           \
    X(NUMBER, session_limit, uint64_t)       \
    X(NUMBER, share, uint32_t)               \
    X(TEXT, key, MEMORYD_LIMIT_KEY_MAX + 1)
