/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of make torture share: memory that outlives each of them.
 *
 * A *place* may hold one buffer that all clients know of. Its lock survives the death of who has it, and says who
 * may change the buffer or look at its bytes; which bytes must be there is a function of the place, how many buffers
 * it has had, and how often this one was written. So any process can tell of any byte whether it is right.
 *
 * No client may be refused anything, so each asks only for what must be granted: what it needs to know about others
 * is here, and nobody changes it without the lock. One thing cannot be known: whether somebody will be killed in the
 * next moment, and with it the only claim on a buffer end. That is why whoever kills says so here before.
 */
#pragma once

#include "tests/integration/clients.h"

#include <pthread.h>
#include <stdatomic.h>

#define CLIENTS     6
#define MEMBERS     (2 * CLIENTS) /* each may have a child made by fork() */
#define PLACES      48
#define OWN_BUFFERS 12 /* of a client, that nobody else knows of */
#define VERSIONS    3
#define FINALS      8
#define SENTENCES   16
#define UNKNOWN     UINT32_MAX

enum phase {
    PHASE_WORK,
    PHASE_REST,  /* nobody does anything more, and nobody is killed */
    PHASE_COUNT, /* what has ended is given back, and everybody says what is left */
    PHASE_END,
};

enum life {
    LIFE_NONE,
    LIFE_HELD,  /* as long as its maker has a claim */
    LIFE_NAMED, /* by its name, for ever */
    LIFE_KEPT,  /* by a keeping token */
};

struct place {
    pthread_mutex_t lock;
    uint32_t generation; /* how many buffers it has had */
    enum life life;
    bool changing; /* what its broker does is not yet said here: if who has the lock dies, nobody knows */
    bool published;
    bool second_name;
    uint32_t maker; /* of the token */
    uint32_t incarnation;
    uint64_t id;
    uint64_t size;
    struct memclient_token token;
    /* each word is of one of these; one, unless a writer died. 0: all zeros */
    uint32_t versions[VERSIONS];
    uint32_t n_versions;
    uint32_t last_version;
    uint32_t finals[FINALS]; /* version of former generations, for those who still have one mapped */
};

/* A client, or the child of one. */
struct member {
    _Atomic pid_t pid;
    _Atomic uint32_t incarnation; /* how many had this number before */
    _Atomic bool doomed;          /* said before it is killed */
    _Atomic bool stopped;
    _Atomic uint64_t call; /* odd: in a call */
    _Atomic uint64_t done; /* operations */
    const char *_Atomic doing;
    _Atomic uint32_t resting; /* the round at whose end it does */
    _Atomic uint32_t counted; /* likewise: this is what it has */
    uint32_t handles;
    uint32_t buffers; /* of its own */
    uint32_t reservations;
    uint64_t bytes; /* of its own */
    uint64_t ids[OWN_BUFFERS];
};

struct figures {
    _Atomic uint64_t calls;
    _Atomic uint64_t failed_calls;
    _Atomic uint64_t bytes_written;
    _Atomic uint64_t bytes_verified;
    _Atomic uint64_t bytes_wrong;
    _Atomic uint64_t refusals;            /* that had to be */
    _Atomic uint64_t over_with_its_maker; /* the one race: see above */
    _Atomic uint64_t passed;              /* descriptors from one client to another */
    _Atomic uint64_t forks;
    _Atomic uint64_t broker_kills;
    _Atomic uint64_t broker_kills_at_start; /* of those: before it served */
    _Atomic uint64_t client_kills;
    _Atomic uint64_t child_kills;
    _Atomic uint64_t stops;
};

struct shared {
    _Atomic int phase;
    _Atomic uint32_t round;
    _Atomic uint32_t killer_rests;
    struct place places[PLACES];
    struct member members[MEMBERS];
    struct figures figures;
    _Atomic uint32_t n_sentences;
    char sentences[SENTENCES][320];
};

extern struct shared *shared;

/* A message between clients: beside it is a descriptor of that place's buffer. */
struct passed {
    uint32_t place;
    uint32_t generation;
};

struct start {
    const char *socket;
    pid_t keeper;
    uint32_t number;
    uint64_t seed;
    uint64_t kills;    /* killer: no more than these */
    int (*inboxes)[2]; /* of the clients: 0 to read, 1 to write */
};

/* Bodies of children, see child.h. */
void torture_client(int channel, void *start);
void torture_killer(int channel, void *start);

/* ---- of all ------------------------------------------------------------------------------------------------------ */

struct random {
    uint64_t state;
};
uint64_t random_below(struct random *random, uint64_t n);
static inline bool one_in(struct random *random, uint64_t n)
{
    return random_below(random, n) == 0;
}

/* Something is wrong: said in the table at the end. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t key_of(uint32_t place, uint32_t generation, uint32_t version);
void bytes_write(void *address, uint64_t size, uint64_t key);
/* How many of the bytes belong to none of the keys; 0 as a key is zeros. */
uint64_t bytes_wrong(const void *address, uint64_t size, const uint64_t *keys, unsigned n_keys);

void place_name(uint32_t place, uint32_t generation, bool second, char name[64]);
bool is_doomed(uint32_t member, uint32_t incarnation);

/* The keeper's child; 0 if there is none at the moment. */

/* ---- judge.c ----------------------------------------------------------------------------------------------------- */

struct inventory {
    char text[8192]; /* a line for each descriptor, sorted */
    uint64_t memory_files;
    uint64_t memory_bytes; /* that they have */
    uint64_t records;
};

/* What keeper and broker have when nobody is there. */
void judge_inventory(const char *socket, pid_t keeper, struct inventory *inventory);
/* Everybody rests: what is there is what has to be there. Ends what killed clients left. */
void judge_round(const char *socket, pid_t keeper);
/* All are gone: ends what has a name or a token, and waits for nothing to be left. */
void judge_end(const char *socket, pid_t keeper, const struct inventory *before, struct inventory *after);
