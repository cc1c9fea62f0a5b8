/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kept reply is a record with its beginning, and a chain of pieces with the rest, which refer to each other by id.
 */
#include "session/kept.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/problem.h"
#include "proto/methods.h"
#include "proto/status.h"

#define HEAD_BYTES  sizeof(((struct kept_record *)NULL)->bytes)
#define PIECE_BYTES sizeof(((struct kept_more_record *)NULL)->bytes)

struct piece {
    OBJECT(struct kept_more_record);
    bool wanted; /* when recovering: it is part of a reply */
};

static struct piece *next_piece(const struct sessions *sessions, uint64_t id)
{
    return id ? table_find(&sessions->kept_more, id) : NULL;
}

/* Is this method's reply kept? A request of another method has a record only if a broker died over it. */
static bool is_recorded(uint16_t method)
{
    switch ((enum method)method) {
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants) \
    case METHOD_##NAME:                                                                   \
        return repeat == REPEAT_RECORDED;
        MEMORYD_METHODS(X)
#undef X
#define X(id, NAME, name, message) case METHOD_EVENT_##NAME:
        MEMORYD_EVENTS(X)
#undef X
        break;
    }
    return false;
}

void kept_init(struct sessions *sessions)
{
    struct ledger *ledger = sessions->table.ledger;

    table_init(&sessions->kept, ledger, RECORD_KEPT, sizeof(struct kept), false);
    table_init(&sessions->kept_more, ledger, RECORD_KEPT_MORE, sizeof(struct piece), true);
    /* INTENT records stay: they tell at which requests brokers died. Pieces are judged with their replies. */
    sessions->kept.keeps_intents = sessions->kept_more.keeps_intents = true;
}

void kept_deinit(struct sessions *sessions)
{
    table_deinit(&sessions->kept_more);
    table_deinit(&sessions->kept);
}

/* ---- in its session ---------------------------------------------------------------------------------------------- */

/* The link of the last one whose sequence is at most this, or the head. Searched from the end, where most are. */
static struct list *place_of(const struct session *session, uint64_t sequence)
{
    struct list *link = session->kept.prev;

    while (link != &session->kept && container_of(link, struct kept, in_session)->record->sequence > sequence)
        link = link->prev;
    return link;
}

struct kept *session_kept(const struct session *session, uint64_t sequence)
{
    struct list *link = place_of(session, sequence);
    struct kept *kept = container_of(link, struct kept, in_session);

    return link != &session->kept && kept->record->sequence == sequence ? kept : NULL;
}

uint64_t kept_cost(const struct sessions *sessions, const struct kept *kept)
{
    uint64_t size = kept->record->size, pieces = size > HEAD_BYTES ? (size - HEAD_BYTES - 1) / PIECE_BYTES + 1 : 0;

    return table_entry_bytes(&sessions->kept) + pieces * table_entry_bytes(&sessions->kept_more);
}

static void kept_charge(struct kept *kept)
{
    struct session *session = kept->session;

    account_restore_metadata(session->account, kept_cost(session->sessions, kept));
    audit_after(&session->sessions->kept, kept);
}

static void kept_uncharge(struct kept *kept)
{
    struct session *session = kept->session;

    audit_before(&session->sessions->kept, kept);
    account_lower_metadata(session->account, kept_cost(session->sessions, kept));
}

static void kept_enter(struct kept *kept, struct session *session)
{
    struct list *before = place_of(session, kept->record->sequence);

    kept->session = session;
    list_init(&kept->in_session);
    list_insert_between(before, &kept->in_session, before->next);
    session->n_kept += is_recorded(kept->record->method);
    kept_charge(kept);
}

static int kept_make(struct session *session, uint64_t sequence, uint16_t method, struct kept **ret,
                     struct problem *problem)
{
    struct kept_record *record;
    struct kept *kept;
    void *object;
    int r = table_alloc(&session->sessions->kept, &object, problem);

    if (r)
        return r;
    kept = object;
    record = record_fresh(kept);
    record->session = session->record->head.id;
    record->sequence = sequence;
    record->method = method;
    kept_enter(kept, session);
    *ret = kept;
    return 0;
}

int kept_new(struct session *session, uint64_t sequence, uint16_t method, struct kept **ret, struct problem *problem)
{
    if (session->n_kept >= MEMORYD_UNACKNOWLEDGED_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "%d requests of this session are without acknowledgement; read their replies, and say so in the "
                      "header of the next one",
                      MEMORYD_UNACKNOWLEDGED_MAX);
    return kept_make(session, sequence, method, ret, problem);
}

/* ---- the reply --------------------------------------------------------------------------------------------------- */

static void free_pieces(struct sessions *sessions, uint64_t first)
{
    struct piece *piece;

    for (uint64_t id = first; (piece = next_piece(sessions, id));) {
        id = piece->record->next;
        table_free(&sessions->kept_more, piece);
    }
}

struct kept *kept_free(struct kept *kept)
{
    struct session *session;

    if (!kept)
        return NULL;
    session = kept->session;
    kept_uncharge(kept);
    free_pieces(session->sessions, kept->record->more);
    session->n_kept -= is_recorded(kept->record->method);
    list_remove(&kept->in_session);
    table_free(&session->sessions->kept, kept);
    return NULL;
}

/* Writes the last piece first, so that each knows the one behind it. 0 and the first one's id, or NO_MEMORY. */
static int write_pieces(struct sessions *sessions, const uint8_t *bytes, size_t size, uint64_t *ret_first)
{
    uint64_t next = 0;

    while (size) {
        size_t n = size % PIECE_BYTES ? size % PIECE_BYTES : PIECE_BYTES;
        struct piece *piece;
        void *object;

        if (table_alloc(&sessions->kept_more, &object, NULL)) {
            free_pieces(sessions, next);
            return STATUS_NO_MEMORY;
        }
        piece = object;
        size -= n;
        memcpy(record_fresh(piece)->bytes, bytes + size, n);
        record_fresh(piece)->next = next;
        record_commit(&sessions->kept_more, piece);
        next = piece->record->head.id;
    }
    *ret_first = next;
    return 0;
}

void kept_finish(struct kept *kept, uint32_t status, const void *payload, size_t size, unsigned n_fds)
{
    struct sessions *sessions = kept->session->sessions;
    size_t n = size < HEAD_BYTES ? size : HEAD_BYTES;
    struct kept_record *record;
    uint64_t more = 0;

    assert(size <= MEMORYD_PAYLOAD_MAX && n_fds <= MEMORYD_FDS_MAX);
    if (kept->record->sequence <= kept->session->record->acknowledged) {
        kept_free(kept);
        return;
    }
    kept->running = NULL;
    record = record_change(&sessions->kept, kept);
    if (write_pieces(sessions, (const uint8_t *)payload + n, size - n, &more)) {
        status = STATUS_NO_MEMORY;
        size = n = n_fds = 0;
    }
    kept_uncharge(kept);
    memcpy(record->bytes, payload, n);
    record->more = more;
    record->status = status;
    record->size = (uint32_t)size;
    record->n_fds = (uint8_t)n_fds;
    record->working = 0;
    kept_charge(kept);
    record_commit(&sessions->kept, kept);
}

void kept_read(const struct kept *kept, void *buffer)
{
    size_t size = kept->record->size, n = size < HEAD_BYTES ? size : HEAD_BYTES;
    uint64_t next = kept->record->more;
    uint8_t *to = buffer;

    memcpy(to, kept->record->bytes, n);
    for (to += n, size -= n; size; to += n, size -= n) {
        const struct piece *piece = next_piece(kept->session->sessions, next);

        n = size < PIECE_BYTES ? size : PIECE_BYTES;
        memcpy(to, piece->record->bytes, n);
        next = piece->record->next;
    }
}

/* Outside of changes, since a worker does not wait for the current change to be committed. */
void kept_set_working(struct kept *kept, bool working)
{
    kept->writable->working = working;
}

void kept_acknowledge(struct session *session, uint64_t cumulative, uint64_t one)
{
    /* written outside of changes: it holds even if the change that it came with is taken back */
    if (session->record->acknowledged < cumulative)
        session->writable->acknowledged = cumulative;
    list_for_each_entry_safe(kept, &session->kept, struct kept, in_session) {
        uint64_t sequence = kept->record->sequence;

        if (sequence > cumulative && sequence > one)
            return;
        if ((sequence <= cumulative || sequence == one) && !kept->running)
            kept_free(kept);
    }
}

/* ---- after another broker ---------------------------------------------------------------------------------------- */

/*
 * The broker may have died over any request that it was at work on. If all of these are one user's, each is blamed. If
 * not, one of them may be somebody's who kills brokers, and the others are innocent: they are suspected only.
 */
struct recovery {
    struct sessions *sessions;
    struct ledger_executing executing;
    uid_t uid; /* of those so far */
    bool any, several;
};

static void suspect_user(struct recovery *recovery, uid_t uid)
{
    recovery->several = recovery->several || (recovery->any && recovery->uid != uid);
    recovery->any = true;
    recovery->uid = uid;
}

/* Are all pieces of it there, and none of them another reply's? Only then are they wanted. A chain that ends after as
 * many pieces as it needs has each of them once. */
static bool match_pieces(const struct sessions *sessions, const struct kept_record *record)
{
    size_t left = record->size > HEAD_BYTES ? record->size - HEAD_BYTES : 0;
    size_t n = (left + PIECE_BYTES - 1) / PIECE_BYTES;
    uint64_t id = record->more;
    struct piece *piece;

    for (; n; n--) {
        piece = next_piece(sessions, id);
        if (!piece || piece->wanted)
            return false;
        id = piece->record->next;
    }
    if (id)
        return false;
    for (id = record->more; (piece = next_piece(sessions, id)); id = piece->record->next)
        piece->wanted = true;
    return true;
}

static void count_death(const struct recovery *recovery, struct kept *kept)
{
    struct kept_record *record = record_change(&kept->session->sessions->kept, kept);
    uint8_t *count = recovery->several ? &record->suspicions : &record->deaths;

    *count += *count < UINT8_MAX;
    record->working = 0;
}

static enum table_verdict recover_kept(void *userdata, void *object, const char **why)
{
    struct recovery *recovery = userdata;
    struct kept *kept = object;
    const struct kept_record *record = kept->record;
    struct session *session = sessions_find(recovery->sessions, record->session);

    if (!session || session->record->ended)
        return TABLE_DROP;
    if (!record->sequence || record->size > MEMORYD_PAYLOAD_MAX || record->n_fds > MEMORYD_FDS_MAX) {
        *why = "its numbers are impossible";
        return TABLE_QUARANTINE;
    }
    if (session_kept(session, record->sequence)) {
        *why = "there is another one of this sequence";
        return TABLE_QUARANTINE;
    }
    if (!match_pieces(recovery->sessions, record)) {
        *why = "a part of it is missing";
        return TABLE_QUARANTINE;
    }
    kept_enter(kept, session);
    if (!record_is_live(&record->head) && record->working)
        suspect_user(recovery, session->record->uid);
    return TABLE_KEEP;
}

/* Frees the pieces of replies that were dropped, or are in quarantine. */
static void drop_unwanted_pieces(struct sessions *sessions)
{
    unsigned budget = UINT32_MAX;
    uint64_t cursor = 0;
    struct piece *piece;

    while ((piece = table_next(&sessions->kept_more, &cursor, &budget)))
        if (!piece->wanted)
            table_free(&sessions->kept_more, piece);
}

/* The request that the loop was executing, if it did not end. Its record may have been taken back with all else that
 * the request changed; then it gets a new one, but without memory for that its death is not counted. */
static struct kept *recover_executing(struct recovery *recovery)
{
    const struct ledger_executing *executing = &recovery->executing;
    struct session *session = sessions_find(recovery->sessions, executing->session);
    struct kept *kept;

    if (!session || session->record->ended || !executing->sequence) {
        recovery->several = true; /* of whom is not known */
        return NULL;
    }
    kept = session_kept(session, executing->sequence);
    if (!kept && kept_make(session, executing->sequence, (uint16_t)executing->method, &kept, NULL))
        return NULL;
    if (record_is_live(&kept->record->head))
        return NULL;
    suspect_user(recovery, session->record->uid);
    return kept;
}

static void count_deaths(struct recovery *recovery)
{
    struct kept *kept, *executing = recovery->executing.session ? recover_executing(recovery) : NULL;
    unsigned budget = UINT32_MAX;
    uint64_t cursor = 0;

    while ((kept = table_next(&recovery->sessions->kept, &cursor, &budget)))
        if (kept == executing || (!record_is_live(&kept->record->head) && kept->record->working))
            count_death(recovery, kept);
}

int kept_recover(struct sessions *sessions, struct ledger *ledger)
{
    struct recovery recovery = {.sessions = sessions, .executing = *ledger_executing(ledger)};
    int r = table_recover(&sessions->kept_more, NULL, NULL);

    /* if this broker dies as well, the death is not counted twice */
    ledger_executing_end(ledger_executing(ledger));
    if (!r)
        r = table_recover(&sessions->kept, recover_kept, &recovery);
    if (r)
        return r;
    drop_unwanted_pieces(sessions);
    count_deaths(&recovery);
    ledger_commit(ledger);
    return 0;
}
