/* SPDX-License-Identifier: Apache-2.0 */
/* Listings: lists of dictionaries. The library calls back for each row, and has the rows of a page meanwhile. */
#include "gil.h"

#include <errno.h>

#include "options.h"

#define END                    \
    {                          \
        NULL, FIELD_BOOL, 0, 0 \
    }

static const struct field list_pool[] = {
    FIELD(TEXT, memclient_pool_info, name),
    FIELD_LIST(UINTS, memclient_pool_info, nodes, n_nodes),
    FIELD(UINT, memclient_pool_info, pages),
    FIELD(UINT, memclient_pool_info, placement),
    FIELD(UINT64, memclient_pool_info, page_size),
    FIELD(UINT64, memclient_pool_info, granule),
    FIELD(UINT64, memclient_pool_info, part_size),
    FIELD_LIST(UINTS, memclient_pool_info, weights, n_weights),
    FIELD(BOOL, memclient_pool_info, lazy),
    FIELD(BOOL, memclient_pool_info, simulated),
    FIELD(UINT64, memclient_pool_info, capacity),
    FIELD(UINT64, memclient_pool_info, used),
    FIELD(UINT64, memclient_pool_info, available),
    FIELD(UINT64, memclient_pool_info, buffers),
    FIELD(BOOL, memclient_pool_info, declared),
    FIELD(UINT64, memclient_pool_info, stock),
    FIELD(UINT64, memclient_pool_info, stock_buffers),
    FIELD(UINT64, memclient_pool_info, stock_ready),
    FIELD(TEXT, memclient_pool_info, allow),
    FIELD(BOOL, memclient_pool_info, client_charged),
    END,
};

static const struct field list_session[] = {
    FIELD(UINT64, memclient_session_info, id),
    FIELD(UINT, memclient_session_info, uid),
    FIELD(UINT, memclient_session_info, gid),
    FIELD(INT, memclient_session_info, pid),
    FIELD(TEXT, memclient_session_info, program),
    FIELD(BOOL, memclient_session_info, connected),
    FIELD(UINT64, memclient_session_info, created_ms),
    FIELD(UINT64, memclient_session_info, bytes),
    FIELD(UINT, memclient_session_info, holds),
    FIELD(UINT, memclient_session_info, tokens),
    FIELD(UINT, memclient_session_info, reservations),
    FIELD(UINT, memclient_session_info, fds_in_flight),
    FIELD(UINT64, memclient_session_info, queued_bytes),
    FIELD(UINT, memclient_session_info, waiting),
    FIELD(UINT64, memclient_session_info, requests),
    END,
};

static const struct field list_name[] = {
    FIELD(TEXT, memclient_name_info, name),      FIELD(UINT, memclient_name_info, uid),
    FIELD(UINT64, memclient_name_info, buffer),  FIELD(UINT, memclient_name_info, policy),
    FIELD(UINT64, memclient_name_info, keep_ms), FIELD(UINT, memclient_name_info, group_rights),
    FIELD(UINT, memclient_name_info, gid),       FIELD(UINT, memclient_name_info, other_rights),
    FIELD(UINT64, memclient_name_info, session), END,
};

static const struct field list_token[] = {
    FIELD(UINT64, memclient_token_info, serial),     FIELD(UINT64, memclient_token_info, buffer),
    FIELD(UINT, memclient_token_info, rights),       FIELD(UINT, memclient_token_info, flags),
    FIELD(UINT, memclient_token_info, uid),          FIELD(UINT, memclient_token_info, gid),
    FIELD(INT, memclient_token_info, pid),           FIELD(UINT, memclient_token_info, uses_left),
    FIELD(UINT64, memclient_token_info, expires_ms), FIELD(UINT, memclient_token_info, maker_uid),
    FIELD(UINT64, memclient_token_info, session),    END,
};

static const struct field list_node[] = {
    FIELD(UINT, memclient_node_info, node),
    FIELD(UINT, memclient_node_info, physical),
    FIELD(UINT64, memclient_node_info, total),
    FIELD(UINT64, memclient_node_info, capacity),
    FIELD(UINT64, memclient_node_info, used),
    FIELD(BOOL, memclient_node_info, has_cpus),
    FIELD(BOOL, memclient_node_info, simulated),
    FIELD_LIST(UINTS, memclient_node_info, distances, n_distances),
    END,
};

static const struct field list_broker[] = {
    FIELD(CHARS, memclient_broker_info, version),
    FIELD(UINT, memclient_broker_info, broker_id),
    FIELD(INT, memclient_broker_info, broker_pid),
    FIELD(UINT, memclient_broker_info, broker_uid),
    FIELD(BOOL, memclient_broker_info, simulated),
    FIELD(UINT64, memclient_broker_info, uptime_ms),
    FIELD(UINT64, memclient_broker_info, sessions),
    FIELD(UINT64, memclient_broker_info, buffers),
    FIELD(UINT64, memclient_broker_info, buffers_detached),
    FIELD(UINT64, memclient_broker_info, buffers_ending),
    FIELD(UINT64, memclient_broker_info, bytes),
    FIELD(UINT64, memclient_broker_info, names),
    FIELD(UINT64, memclient_broker_info, tokens),
    FIELD(UINT64, memclient_broker_info, reservations),
    FIELD(UINT64, memclient_broker_info, requests),
    FIELD(UINT64, memclient_broker_info, refused),
    FIELD(CHARS, memclient_broker_info, config),
    FIELD(INT, memclient_broker_info, keeper_pid),
    FIELD(UINT, memclient_broker_info, restarts),
    FIELD(UINT64, memclient_broker_info, pools),
    FIELD(UINT64, memclient_broker_info, capacity),
    FIELD(UINT64, memclient_broker_info, used),
    END,
};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

struct listing {
    struct gil gil;
    PyObject *rows;
};

/* What the library's listings want, but for the type of the row. Without the interpreter's lock. */
static int list_add(const struct field *fields, const void *record, struct listing *listing)
{
    PyObject *row;
    int r;

    gil_take(&listing->gil, 0);
    row = fields_read(fields, record);
    r = row ? PyList_Append(listing->rows, row) : -1;
    Py_XDECREF(row);
    gil_release(&listing->gil);
    return r ? -ECANCELED : 0;
}

/* LIST(pool, pools) makes list_pools() of memclient_list_pools(). */
#define LIST(item, items, table)                                                       \
    static int list_add_##item(const struct memclient_##item##_info *info, void *data) \
    {                                                                                  \
        return list_add(table, info, data);                                            \
    }                                                                                  \
    static PyObject *list_##items(PyObject *module, PyObject *none)                    \
    {                                                                                  \
        struct listing listing = {.rows = PyList_New(0)};                              \
        int r;                                                                         \
                                                                                       \
        if (!listing.rows)                                                             \
            return NULL;                                                               \
        gil_release(&listing.gil);                                                     \
        r = memclient_list_##items(NULL, list_add_##item, &listing);                   \
        gil_take(&listing.gil, r);                                                     \
        if (!r)                                                                        \
            return listing.rows;                                                       \
        Py_DECREF(listing.rows);                                                       \
        return errors_raise(module_state(module), r);                                  \
    }

LIST(pool, pools, list_pool)
LIST(buffer, buffers, options_buffer_info)
LIST(session, sessions, list_session)
LIST(name, names, list_name)
LIST(token, tokens, list_token)
LIST(node, nodes, list_node)

static PyObject *broker_query(PyObject *module, PyObject *none)
{
    struct memclient_broker_info info = MEMCLIENT_BROKER_INFO_INIT;
    struct gil gil;
    int r;

    gil_release(&gil);
    r = memclient_broker_query(NULL, &info);
    gil_take(&gil, r);
    return r ? errors_raise(module_state(module), r) : fields_read(list_broker, &info);
}

PyMethodDef list_functions[] = {
    {"list_pools", list_pools, METH_NOARGS, "list_pools()"},
    {"list_buffers", list_buffers, METH_NOARGS, "list_buffers()"},
    {"list_sessions", list_sessions, METH_NOARGS, "list_sessions()"},
    {"list_names", list_names, METH_NOARGS, "list_names()"},
    {"list_tokens", list_tokens, METH_NOARGS, "list_tokens()"},
    {"list_nodes", list_nodes, METH_NOARGS, "list_nodes()"},
    {"broker_query", broker_query, METH_NOARGS, "broker_query()"},
    {NULL, NULL, 0, NULL},
};
