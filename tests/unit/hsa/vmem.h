/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of virtual memory say often. Each fails the test if HSA refuses.
 */
#pragma once

#include <stddef.h>

#include "base/align.h"
#include "tests/unit/hsa/hsa.h"

typedef hsa_amd_vmem_alloc_handle_t handle_t;

/* A string constant, into memory that has room for it. */
#define write_text(to, text) memcpy((to), (text), sizeof(text))

/* Of node 0's standard pool; and of any. */
handle_t vmem_create(size_t size);
handle_t vmem_create_in(hsa_amd_memory_pool_t pool, size_t size);
void vmem_release(handle_t handle);

/* Reserved addresses. */
char *vmem_reserve(size_t size);
void vmem_free(void *va, size_t size);

/* Maps all of it, or from an offset on; without access, or with. */
void vmem_map(void *va, size_t size, handle_t handle);
void vmem_map_rw(void *va, size_t size, handle_t handle);
void vmem_unmap(void *va, size_t size);

/* Both agents, or one of them. */
void vmem_allow(void *va, size_t size);
void vmem_allow_one(void *va, size_t size, unsigned agent, hsa_access_permission_t permissions);
hsa_access_permission_t vmem_access(void *va, unsigned agent);

/* What the kernel lets this process do with the page: "---", "r--" or "rw-"; "" if nothing is there. */
const char *vmem_pages(const void *va);
bool vmem_is_readable(const void *va);
bool vmem_is_writable(const void *va);
/* Are the addresses taken in this process? */
bool vmem_is_taken(const void *va, size_t size);
/* Bytes of memory that this process has at [va, va + size), whole mappings of the kernel. */
size_t vmem_resident(const void *va, size_t size);
