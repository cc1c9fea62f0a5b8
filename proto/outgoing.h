/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet on its way from the broker to a client.
 *
 * The descriptors that go with it are not open yet: it may wait, and whoever asks for many and reads nothing would have
 * the broker keep them all open. The packet has a list of what is to be opened, which is only its maker's to read, and
 * whoever sends it has the descriptors opened at that moment.
 */
#pragma once

#include <stddef.h>

#include "proto/frame.h"

struct outgoing {
    struct frame_header header; /* its payload length and number of descriptors count only when it is sent */
    const void *payload;
    size_t size;
    const void *fd_list; /* NULL: no descriptors */
    size_t fd_list_size;
    unsigned n_fds; /* the most that go with it */
};

/* What came of opening them. */
enum outgoing_fds {
    OUTGOING_OPEN,  /* all that there are */
    OUTGOING_SOME,  /* the first of them: the others in the next turn of its client */
    OUTGOING_LATER, /* none can be opened now */
};
