/* SPDX-License-Identifier: Apache-2.0 */
/* A client of make torture: its state, and how it calls the library. */
#pragma once

#include "tests/torture/torture.h"

#define OWN_RESERVATIONS 4

/* A handle of a place's buffer, mapped. */
struct held {
    struct memclient_buffer *buf; /* NULL: none */
    void *address;
    uint32_t generation;
    bool writable;
};

/* A buffer that nobody else knows of. */
struct own {
    struct memclient_buffer *buf;
    void *address;
    uint64_t size;
    uint64_t key;
};

struct client {
    const struct start *start;
    struct memclient_context *ctx;
    struct random random;
    struct member *me;
    uint32_t number; /* of the member */
    uint32_t incarnation;
    uint32_t serial;
    struct held held[PLACES];
    struct own own[OWN_BUFFERS];
    struct memclient_reservation *reservations[OWN_RESERVATIONS];
};

/* A call that must succeed; its (not negative) result. */
#define DO(call)                                    \
    __extension__({                                 \
        int result_;                                \
        call_begins(c, #call);                      \
        result_ = (call);                           \
        call_ended(c, result_, 0, #call, __LINE__); \
        result_;                                    \
    })
/* One that must be refused with just this errno. */
#define MUST_REFUSE(call, wanted)                         \
    do {                                                  \
        call_begins(c, #call);                            \
        call_ended(c, (call), (wanted), #call, __LINE__); \
        atomic_fetch_add(&shared->figures.refusals, 1);   \
    } while (0)
/* Something else that must hold. */
#define MUST(expression)                       \
    do {                                       \
        if (!(expression))                     \
            give_up(c, #expression, __LINE__); \
    } while (0)

void call_begins(struct client *c, const char *what);
/* Ends the process if the result is not 0 or more, or -wanted. */
void call_ended(struct client *c, int result, int wanted, const char *what, int line);
_Noreturn void give_up(struct client *c, const char *what, int line);

static inline uint64_t below(struct client *c, uint64_t n)
{
    return random_below(&c->random, n);
}

static inline bool is_a_child(const struct client *c)
{
    return c->number >= CLIENTS;
}

/* Sizes as programs have them: mostly small, some large; whole pages. */
uint64_t some_size(struct client *c);
/* What is at the address is of these keys. */
void verify(struct client *c, const void *address, uint64_t size, const uint64_t *keys, unsigned n_keys);

/* ---- own.c: with buffers of its own ------------------------------------------------------------------------------ */

void own_operation(struct client *c);
void own_verify_all(struct client *c);
void own_forget_all(struct client *c);
void ask_something(struct client *c);

/* ---- places.c: with those that all know of ----------------------------------------------------------------------- */

void place_operation(struct client *c);
/* What another client has sent. */
void place_receive(struct client *c);
void places_verify_all(struct client *c);
/* Gives back what has ended for others. */
void places_drop_stale(struct client *c);
/* All claims are given up: places that live by them are over. */
void places_leave(struct client *c);
