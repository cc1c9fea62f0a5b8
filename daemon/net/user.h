/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What net.c offers to connection.c and listener.c, and to nobody else.
 */

#include <stdbool.h>
#include <sys/types.h>

struct connection;
struct closer;
struct net;
struct net_user;

/* The user's counters, made at need; NULL if there is no memory. They go when the last connection goes. */
struct net_user *net_user_get(struct net *net, uid_t uid);
/* Frees it if it has no connection. */
void net_user_drop(struct net *net, struct net_user *user);

/* Do so many descriptors of this user wait to be closed that no more may come? */
bool net_user_is_backlogged(const struct net *net, const struct net_user *user);

/* Closes a client's socket without waiting for what is in packets that were not received. */
void net_close_socket(struct closer *closer, int fd);

/* Its next packet is tried again when descriptors on their way to others have arrived. */
void net_wait_for_budget(struct net *net, struct connection *connection);
