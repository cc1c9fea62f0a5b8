/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, errnos and texts of the wire's statuses, expanded from the one list in status.h.
 */
#include <errno.h>

#include "proto/status.h"

int status_errno(unsigned status) {
    switch (status) {
#define X(name, number, err, text)                                                                           \
    case number:                                                                                             \
        return err;
        MEMORYD_STATUSES(X)
#undef X
    }
    return status_errno(STATUS_REFUSED);
}

const char *status_name(unsigned status) {
    switch (status) {
#define X(name, number, err, text)                                                                           \
    case number:                                                                                             \
        return #name;
        MEMORYD_STATUSES(X)
#undef X
    }
    return status_name(STATUS_REFUSED);
}

const char *status_text(unsigned status) {
    switch (status) {
#define X(name, number, err, text)                                                                           \
    case number:                                                                                             \
        return text;
        MEMORYD_STATUSES(X)
#undef X
    }
    return status_text(STATUS_REFUSED);
}
