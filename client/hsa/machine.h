/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of the processors of a node: how many, which, how fast, with which caches.
 *
 * It is for people and for programs that tune themselves, so nothing here can fail: what cannot be found out is 0 or a
 * plain word. Processors of a node are taken to be alike; the first one that is online speaks for all.
 */
#pragma once

#include <stdbool.h>

#include "hsa/topology.h"

/*
 * Fills in name, cores, max_mhz, cache_bytes, cacheline, and the caches' level, size and name, for the node that the
 * kernel calls so. has_cpus: as the broker says, for kernels that do not. `root` is where /sys, /proc and /etc are: "".
 */
void machine_describe(struct agent *agent, uint32_t physical, bool has_cpus, const char *root);
/* Its uuid, by its node: the same in every process of the machine and after every boot. */
void machine_identify(struct agent *agent, const char *root);
