/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back to the broker without waiting for it. Programs free from wherever they like, an OpenCL driver's workers
 * included; what such a free leaves to be told to the broker is put into a line here, and one thread sees to it. It
 * starts with the first such thing.
 */
#pragma once

#include "base/list.h"

struct returned {
    struct list link;
    /* Gives it back, and frees it. */
    void (*release)(struct returned *returned);
};

/* Never blocks on a call to the broker, unless no thread can be started. */
void returns_put(struct returned *returned);
/* Sees to all that is in the line now; it may wait for the broker. */
void returns_flush(void);

void returns_before_fork(void);
void returns_in_parent(void);
/* What is in the line is the parent's to give back. */
void returns_in_child(void);
