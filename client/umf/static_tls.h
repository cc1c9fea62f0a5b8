/* SPDX-License-Identifier: Apache-2.0 */
/* Where this library has its threads' variables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Are they at one place in all threads, by the thread pointer? So it is if the library was loaded with the program, and
 * not by dlopen(). Then *offset gets where `variable` is, as the calling thread sees it.
 */
bool static_tls(const void *variable, intptr_t *offset);
