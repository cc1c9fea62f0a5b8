/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the system's pages beside the base page. */
#pragma once

#include <stdint.h>

/* What the kernel makes transparent huge pages of, or 0 if it makes none. */
uint64_t pages_transparent(void);
/* The default page of hugetlb, or 0. */
uint64_t pages_huge(void);
