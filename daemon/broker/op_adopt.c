/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign buffers: memory that the broker did not make, but carries from one process to another.
 *
 * The descriptor that a client hands in becomes the T of a buffer, which has what others have: holds, tokens, names,
 * rows in listings, and recovery after a death of the broker, by the same steps (its intent, then the keeper, then its
 * commit). It costs its user a buffer and no bytes, since its memory is charged elsewhere, if anywhere.
 *
 * It lacks what depends on the broker having made the memory. It is not sealed, so that its maker may cut it. What
 * leaves is a duplicate of T with the same access; hold_export() refuses other rights. The kernel does not say who
 * still has it open. So only clients that have said that they accept such buffers get one.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "broker/claims.h"
#include "broker/export.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "mem/handle.h"
#include "proto/status.h"

/* The broker's own buffers are refused: they are imported, and can do more. */
static int check_descriptor(struct broker *broker, int fd, struct handle_identity *ret, struct problem *problem)
{
    const struct buffer *own;
    int r = handle_adoptable(fd, ret, problem);

    if (r)
        return r;
    own = buffers_by_inode(&broker->buffers, ret->dev, ret->ino);
    if (own)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "the descriptor is of buffer %llu of this broker; import it",
                      (unsigned long long)own->record->head.id);
    return 0;
}

/* As batch_hold(). If the keeper is gone, this broker ends and answers nobody. */
static int hold_memory(struct broker *broker, const struct buffer *buffer, struct problem *problem)
{
    int r = keeper_hold(broker->options.keeper, KEEPER_BUFFER, buffer->record->head.id, buffer->fd);

    if (r >= 0 || r == -EPIPE)
        return r;
    return refuse(problem, STATUS_NO_DESCRIPTORS,
                  "the keeper cannot hold the descriptor, so that a crash would lose it (%s); try again in a moment",
                  strerrordesc_np(-r));
}

/* T is a duplicate, so that the caller closes the descriptor whether it is refused or not. */
static int adopt_descriptor(struct broker *broker, struct session *session, int fd, struct hold **ret,
                            struct problem *problem)
{
    const struct memory_spec spec = {.flags = BUFFER_NO_ADDRESS};
    const struct buffer_owner owner = owner_of(session);
    struct plan none = {.pool = NULL};
    struct handle_identity identity;
    struct buffer *buffer;
    uint32_t rights;
    int t;
    int r = check_descriptor(broker, fd, &identity, problem);

    if (r)
        return r;
    r = handle_duplicate(fd, &t, problem);
    if (r)
        return r;
    ledger_need(broker->ledger, LEDGER_FOREIGN);
    none.size = identity.size;
    r = buffer_new(&broker->buffers, &none, &spec, &owner, &buffer, problem);
    if (r) {
        fd_close(t);
        return r;
    }
    r = buffer_set_memory(&broker->buffers, buffer, t, &identity, 0, false);
    assert(!r);
    r = hold_memory(broker, buffer, problem);
    if (!r) {
        buffer_commit(&broker->buffers, buffer);
        rights = handle_is_writable(t) ? RIGHTS_ALL : RIGHTS_ALL & ~(uint32_t)RIGHT_WRITE;
        r = claim_hold(broker, session, buffer, rights, ret, problem);
        if (r)
            lifecycle_claim_gone(broker, buffer);
    } else if (r > 0) {
        lifecycle_abort(broker, buffer);
    }
    return r;
}

int op_adopt(struct op *op, int fd, struct opened *result)
{
    struct session *session;
    struct hold *hold;
    int r = op_session(op, &session);

    if (!r)
        r = adopt_descriptor(op->broker, session, fd, &hold, &op->problem);
    if (r)
        return r;
    result->n = 1;
    result->with_fds = false;
    fdset_init(&result->fds);
    opened_fill(&result->items[0], hold);
    return 0;
}
