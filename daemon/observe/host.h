/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom may a request name as its host?
 *
 * A page in a browser on this machine may have a name that leads to 127.0.0.1 once the page is loaded (DNS rebinding);
 * then it can read what a service there answers, as if that were its own. Such a request has the page's name in its
 * header. So only names that nobody else can own are accepted: addresses, localhost, and the name of this machine.
 */
#pragma once

#include <stdbool.h>

/* The value of the header Host, NULL if there is none. */
bool host_is_ours(const char *value);
