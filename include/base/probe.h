/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static probes (USDT): places in the daemon that bpftrace, perf, gdb and SystemTap find by name, with what they are
 * about.
 *
 * A probe is one nop; a note in the program says where it is, and in which register or memory its arguments are then.
 * That costs nothing as long as an argument is a constant, or at hand anyway: a variable, or a field behind a pointer
 * that is in a register. So no probe calls a function for an argument, and none is in a loop over bytes or pages.
 *
 * Names and arguments are an interface: memoryd(8), PROBES, has each of them, and tests/integration/probes.sh compares
 * them with the program.
 */
#pragma once

#if PROBES
#define SDT_USE_VARIADIC
#include <sys/sdt.h>

/* PROBE(name, argument...): integers and strings. Of an array, give &array[0]. */
#define PROBE(name, ...) STAP_PROBEV(memoryd, name, __VA_ARGS__)
#else
static inline void probe_ignore(const char *name, ...)
{
    (void)name;
}

/* compiled, so that it is right in either build, and never run */
#define PROBE(name, ...)                      \
    do {                                      \
        if (0)                                \
            probe_ignore(#name, __VA_ARGS__); \
    } while (0)
#endif
