/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this process still has something that brokers gave it which it has lost: mappings and reservations stay when
 * all of a broker is gone, and the next one is told of them, so that it gives no address that cannot be used here.
 */
#pragma once

struct memclient;
struct rpc_occupied;

/*
 * Of this context, for its next HELLO. Without its lock. Where there are more than can be told those that lie next to
 * each other are told as one, with what is between them. Without memory none is told.
 */
void occupied_ranges(struct memclient *ctx, struct rpc_occupied *occupied);
