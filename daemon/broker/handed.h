/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that the keeper hands over to a broker that starts: options.inherited, sorted by id.
 */
#pragma once

#include <stdint.h>

#include "broker/broker.h"
#include "keeper/link.h"

struct broker;

/* 0, or a negative errno. */
int handed_sort(struct broker_options *options);
/* NULL if there is none. */
struct inherited_fd *handed_find(struct broker *broker, enum keeper_kind kind, uint64_t id);
/* Its descriptor, likewise. */
int *handed_fd(struct broker *broker, enum keeper_kind kind, uint64_t id);
/* When all records are there: what belongs to none of them is closed, here and by the keeper, but not what quarantined
 * ones may want. 0, or a negative errno. */
int handed_drop_rest(struct broker *broker);
