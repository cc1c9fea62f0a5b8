/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes of an operation on the wire.
 *
 * The broker refuses with one of these and a sentence that says what to do; the client library turns the number into
 * the errno of the third column. Numbers are part of the protocol: they are never reused, and new ones are added at the
 * end. A client treats an unknown number as REFUSED.
 *
 * Inside the daemon these are the positive half of the error model: every function that may refuse returns 0, one of
 * these, or a negative errno that is fatal. OP_PENDING (broker/operations.h) is not a status and never reaches the
 * wire.
 */
#pragma once

/* X(name, number, errno, what it means) */
#define MEMORYD_STATUSES(X)                                                                                  \
    X(OK, 0, 0, "done")                                                                                      \
    X(REFUSED, 1, EIO, "refused for a reason this version has no number for")                                \
    X(INVALID_ARGUMENT, 2, EINVAL, "an argument is malformed or out of its range")                           \
    X(SIZE_ZERO, 3, EINVAL, "a size of zero")                                                                \
    X(SIZE_OVERFLOW, 4, EOVERFLOW, "a size or offset that overflows when rounded or added")                  \
    X(TOO_BIG, 5, EFBIG, "more than the pool could ever hold")                                               \
    X(NO_SUCH_POOL, 6, ENODEV, "no pool has this name, node and page size")                                  \
    X(NO_SUCH_NODE, 7, ENXIO, "no NUMA node has this number, or it has no memory")                           \
    X(POOL_FULL, 8, ENOMEM, "the pool or its nodes have no room now")                                        \
    X(NO_MEMORY, 9, ENOMEM, "the kernel had no memory although the budget had room")                         \
    X(MISPLACED, 10, ENOMEM, "the kernel could not place every page where `bind` wants it")                  \
    X(LIMIT, 11, EDQUOT, "a limit of this user or session is reached, or the user's share of what all have") \
    X(TIMED_OUT, 12, ETIMEDOUT, "the caller's own deadline passed first")                                    \
    X(NO_RIGHT, 13, EACCES, "the caller does not have the right that this needs")                            \
    X(NOT_ADMIN, 14, EPERM, "only the broker's own user or root may do this")                                \
    X(STALE, 15, ESTALE, "the buffer, session or reservation has ended; ids are not reused")                 \
    X(NO_SUCH_ID, 16, ENOENT, "this id was never given out")                                                 \
    X(NO_SUCH_NAME, 17, ENOENT, "no buffer has this name")                                                   \
    X(NAME_EXISTS, 18, EEXIST, "the name is bound already")                                                  \
    X(BAD_NAME, 19, EINVAL, "not a name: 1-255 bytes of printable UTF-8")                                    \
    X(TOKEN_MALFORMED, 20, EBADMSG, "32 bytes that are no token")                                            \
    X(TOKEN_FOREIGN, 21, EREMOTE, "a token of another broker")                                               \
    X(TOKEN_STALE, 22, ESTALE, "the token's buffer has ended")                                               \
    X(TOKEN_EXHAUSTED, 23, EKEYEXPIRED, "the token was used as often as it may be, or its time is over")     \
    X(TOKEN_REVOKED, 24, EKEYREVOKED, "the token was revoked")                                               \
    X(TOKEN_REJECTED, 25, EKEYREJECTED, "the token's secret is wrong")                                       \
    X(TOKEN_NOT_YOURS, 26, EACCES, "the token is for another user, group or process")                        \
    X(FD_FOREIGN, 27, EREMOTE, "the descriptor is not of a buffer of this broker")                           \
    X(BUSY, 28, EBUSY, "somebody else uses it in a way that forbids this")                                   \
    X(NOT_SUPPORTED, 29, EOPNOTSUPP, "this kind of buffer or this system cannot do that")                    \
    X(PUBLISHED, 30, EROFS, "the buffer is published: nobody may write it any more")                         \
    X(NO_ADDRESS_SPACE, 31, EADDRNOTAVAIL, "the arena has no such free range")                               \
    X(ADDRESS_TAKEN, 32, EADDRINUSE, "the wanted range of the arena is taken")                               \
    X(NO_SESSION, 33, ENOTCONN, "the first message must be HELLO")                                           \
    X(SESSION_REJECTED, 34, EKEYREJECTED, "the session cannot be resumed by this process")                   \
    X(VERSION, 35, EPROTONOSUPPORT, "no protocol version in common")                                         \
    X(PROTOCOL, 36, EPROTO, "the message breaks the protocol; the connection closes")                        \
    X(NO_DESCRIPTORS, 37, ENFILE, "the broker's descriptor limit is reached")                                \
    X(SHUTTING_DOWN, 38, ESHUTDOWN, "the broker is stopping")                                                \
    X(NO_SUCH_METHOD, 39, ENOSYS, "the broker has no such method")                                           \
    X(TICKET_STALE, 40, EAGAIN, "the ticket was used, is too old, or of another broker or session")

enum status {
#define X(name, number, err, text) STATUS_##name = number,
    MEMORYD_STATUSES(X)
#undef X
};

/* the errno (positive) of a status; an unknown number is that of REFUSED */
int status_errno(unsigned status);
/* "POOL_FULL"; "REFUSED" for an unknown number */
const char *status_name(unsigned status);
/* the last column above */
const char *status_text(unsigned status);
