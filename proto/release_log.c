/* SPDX-License-Identifier: Apache-2.0 */
/* See release_log.h. */
#include "proto/release_log.h"

#include <string.h>

#include "proto/frame.h"

static unsigned cells_of(size_t size)
{
    return (unsigned)((size + RELEASE_LOG_CELL - 1) / RELEASE_LOG_CELL);
}

/* The first of `n` cells in a row that are free; RELEASE_LOG_CELLS if there are none. */
static unsigned find_free_cells(const struct release_log *log, unsigned n)
{
    unsigned run = 0;

    for (unsigned i = 0; i < RELEASE_LOG_CELLS;) {
        if (log->sizes[i]) {
            run = 0;
            i += cells_of(log->sizes[i]);
        } else if (i++, ++run == n) {
            return i - n;
        }
    }
    return RELEASE_LOG_CELLS;
}

unsigned release_log_put(struct release_log *log, const struct iovec iov[2])
{
    size_t size = iov[0].iov_len + iov[1].iov_len;
    unsigned first;

    if (!size || size > sizeof(log->cells))
        return 0;
    first = find_free_cells(log, cells_of(size));
    if (first == RELEASE_LOG_CELLS)
        return 0;
    memcpy(log->cells[first], iov[0].iov_base, iov[0].iov_len);
    if (iov[1].iov_len)
        memcpy(log->cells[first] + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
    __atomic_store_n(&log->sizes[first], (uint16_t)size, __ATOMIC_RELEASE);
    return first + 1;
}

void release_log_remove(struct release_log *log, unsigned place)
{
    __atomic_store_n(&log->sizes[place - 1], 0, __ATOMIC_RELEASE);
}

static bool is_sound(const void *packet, size_t size, uint64_t *sequence)
{
    struct frame_header header;
    const uint8_t *payload;

    if (frame_decode(packet, size, 0, FRAME_FROM_CLIENT, &header, &payload))
        return false;
    *sequence = header.sequence;
    return true;
}

bool release_log_next(const struct release_log *log, uint64_t *sequence, const void **packet, size_t *size)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < RELEASE_LOG_CELLS;) {
        size_t n = log->sizes[i];
        uint64_t found;

        if (n <= (RELEASE_LOG_CELLS - i) * (size_t)RELEASE_LOG_CELL && is_sound(log->cells[i], n, &found) &&
            found > *sequence && found < least) {
            least = found;
            *packet = log->cells[i];
            *size = n;
        }
        i += n ? cells_of(n) : 1;
    }
    if (least == UINT64_MAX)
        return false;
    *sequence = least;
    return true;
}
