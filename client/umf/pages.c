/* SPDX-License-Identifier: Apache-2.0 */
/* Looked at in files of the kernel, at each call: it is asked for before allocations, and settings change. */
#include "umf/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "base/textfile.h"

#define THP "/sys/kernel/mm/transparent_hugepage/"

/* A number at the beginning of a text, after blanks; 0 if there is none that a page could have. */
static uint64_t size_in(const char *text, uint64_t unit)
{
    uint64_t n;

    errno = 0;
    n = strtoull(text, NULL, 10);
    return errno || n > UINT32_MAX || !is_power_of_two(n) ? 0 : n * unit;
}

uint64_t pages_transparent(void)
{
    char line[64];

    if (!textfile_line(line, sizeof(line), THP "enabled") || strstr(line, "[never]"))
        return 0;
    return textfile_line(line, sizeof(line), THP "hpage_pmd_size") ? size_in(line, 1) : 0;
}

uint64_t pages_huge(void)
{
    static const char label[] = "Hugepagesize:";
    _cleanup_fclose_ FILE *file = fopen("/proc/meminfo", "re");
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, label, sizeof(label) - 1))
            return size_in(line + sizeof(label) - 1, 1024);
    return 0;
}
