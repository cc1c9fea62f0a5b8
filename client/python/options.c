/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. The lists of an allocation, nodes and weights, are set by whoever calls. */
#include "options.h"

#include <memclient/heap.h>

#define END                    \
    {                          \
        NULL, FIELD_BOOL, 0, 0 \
    }

const struct field options_alloc[] = {
    FIELD(TEXT, memclient_alloc_options, pool),
    FIELD(UINT, memclient_alloc_options, pages),
    FIELD(UINT64, memclient_alloc_options, page_size),
    FIELD(UINT, memclient_alloc_options, placement),
    FIELD(UINT64, memclient_alloc_options, part_size),
    FIELD(UINT64, memclient_alloc_options, alignment),
    FIELD(UINT64, memclient_alloc_options, address),
    FIELD(UINT, memclient_alloc_options, flags),
    FIELD(UINT64, memclient_alloc_options, wait_ms),
    FIELD(TEXT, memclient_alloc_options, name),
    END,
};

const struct field options_name[] = {
    FIELD(UINT, memclient_name_options, policy),       FIELD(UINT64, memclient_name_options, keep_ms),
    FIELD(UINT, memclient_name_options, group_rights), FIELD(UINT, memclient_name_options, gid),
    FIELD(UINT, memclient_name_options, other_rights), END,
};

const struct field options_share[] = {
    FIELD(UINT, memclient_share_options, rights), FIELD(UINT, memclient_share_options, flags),
    FIELD(UINT, memclient_share_options, uses),   FIELD(UINT64, memclient_share_options, expiry_ms),
    FIELD(UINT, memclient_share_options, uid),    FIELD(UINT, memclient_share_options, gid),
    FIELD(INT, memclient_share_options, pid),     END,
};

const struct field options_buffer_info[] = {
    FIELD(UINT64, memclient_buffer_info, id),
    FIELD(UINT, memclient_buffer_info, state),
    FIELD(UINT, memclient_buffer_info, flags),
    FIELD(UINT64, memclient_buffer_info, length),
    FIELD(UINT64, memclient_buffer_info, bytes),
    FIELD(CHARS, memclient_buffer_info, pool),
    FIELD(UINT, memclient_buffer_info, pages),
    FIELD(UINT, memclient_buffer_info, placement),
    FIELD(UINT64, memclient_buffer_info, page_size),
    FIELD(UINT64, memclient_buffer_info, huge_bytes),
    FIELD(UINT, memclient_buffer_info, uid),
    FIELD(UINT, memclient_buffer_info, charged_uid),
    FIELD(INT, memclient_buffer_info, pid),
    FIELD(UINT, memclient_buffer_info, holds),
    FIELD(UINT, memclient_buffer_info, names),
    FIELD(UINT, memclient_buffer_info, tokens),
    FIELD(UINT64, memclient_buffer_info, inode),
    FIELD(UINT64, memclient_buffer_info, address),
    FIELD(UINT64, memclient_buffer_info, created_ms),
    FIELD(UINT64, memclient_buffer_info, detached_ms),
    FIELD(CHARS, memclient_buffer_info, name),
    FIELD_LIST(ARRAY, memclient_buffer_info, nodes, n_nodes),
    FIELD_LIST(ARRAY64, memclient_buffer_info, node_bytes, n_nodes),
    FIELD_LIST(ARRAY64, memclient_buffer_info, holders, n_holders),
    FIELD_LIST(ARRAY, memclient_buffer_info, holder_rights, n_holders),
    FIELD_LIST(ARRAY, memclient_buffer_info, holder_claims, n_holders),
    FIELD_LIST(ARRAY, memclient_buffer_info, holder_cached, n_holders),
    FIELD_LIST(ARRAY64, memclient_buffer_info, holder_since_ms, n_holders),
    FIELD(UINT, memclient_buffer_info, seals),
    END,
};

const struct field options_heap[] = {
    FIELD(UINT64, memclient_heap_options, slab_size),
    FIELD(UINT64, memclient_heap_options, slabs_max),
    FIELD(UINT, memclient_heap_options, flags),
    FIELD(TEXT, memclient_heap_options, name),
    END,
};

const struct field options_heap_info[] = {
    FIELD(UINT64, memclient_heap_info, member),
    FIELD(UINT64, memclient_heap_info, slabs),
    FIELD(UINT64, memclient_heap_info, bytes),
    FIELD(UINT64, memclient_heap_info, blocks),
    FIELD(UINT64, memclient_heap_info, blocks_free),
    FIELD(UINT64, memclient_heap_info, blocks_owned),
    FIELD(UINT64, memclient_heap_info, blocks_given),
    FIELD(UINT64, memclient_heap_info, blocks_mine),
    FIELD(UINT64, memclient_heap_info, members),
    FIELD(UINT64, memclient_heap_info, readers),
    END,
};
