/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorded snapshot: what `memctl top --json` has printed, or a listing of buffers by `memctl buffers --json`. Nobody
 * chooses and adds up here but this.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "memctl/top.h"

const char *top_load(struct top *top, const char *path)
{
    static char wrong[JSON_ERROR_TEXT_LENGTH + 32];
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error), *first;

    if (!file) {
        if (error.line > 0)
            (void)snprintf(wrong, sizeof(wrong), "line %d: %s", error.line, error.text);
        else
            (void)snprintf(wrong, sizeof(wrong), "%s", error.text);
        return wrong;
    }
    first = json_array_get(file, 0);
    if (json_is_array(json_object_get(first, "buffers")))
        top->recorded = json_incref(first);
    else if (json_is_array(file) && (!json_array_size(file) || json_is_integer(json_object_get(first, "bytes"))))
        top->recorded = json_pack("{s:O}", "buffers", file);
    json_decref(file);
    return top->recorded ? NULL : "is neither what `memctl top --json' prints nor `memctl buffers --json'";
}

static bool is_held_by(const json_t *row, uint64_t session)
{
    size_t index;
    json_t *holder;

    json_array_foreach(json_object_get(row, "holders"), index, holder)
        if ((uint64_t)top_number(holder, "session") == session)
            return true;
    return false;
}

static bool is_chosen(const struct top_filter *filter, const json_t *row)
{
    const char *pool = json_string_value(json_object_get(row, "pool"));

    return (filter->uid < 0 || top_number(row, "charged_uid") == filter->uid) &&
           (filter->pid <= 0 || top_number(row, "pid") == filter->pid) &&
           (!*filter->pool || (pool && !strcmp(pool, filter->pool))) &&
           (!filter->session || is_held_by(row, filter->session));
}

/* The sums of a record, and what it does not say of each row: an older memctl has made it. */
struct replay_sums {
    struct memclient_buffer_sums sums;
    bool lacks_huge_bytes, lacks_holds;
};

static void replay_add(const json_t *row, struct replay_sums *replay)
{
    struct memclient_buffer_sums *sums = &replay->sums;
    const char *pages = json_string_value(json_object_get(row, "pages"));
    const char *state = json_string_value(json_object_get(row, "state"));
    const char *huge = pages && !strcmp(pages, "hugetlb") ? "bytes" : "huge_bytes";

    sums->buffers++;
    sums->bytes += (uint64_t)top_number(row, "bytes");
    sums->huge_bytes += (uint64_t)top_number(row, huge);
    sums->holds += (uint64_t)top_number(row, "holds");
    replay->lacks_huge_bytes |= !json_is_integer(json_object_get(row, huge));
    replay->lacks_holds |= !json_is_integer(json_object_get(row, "holds"));
    if (state && !strcmp(state, "detached")) {
        sums->detached++;
        sums->detached_bytes += (uint64_t)top_number(row, "bytes");
    }
}

static json_t *replay_pack(const struct replay_sums *replay)
{
    json_t *sums = top_pack_sums(&replay->sums);

    if (replay->lacks_huge_bytes)
        (void)json_object_set_new(sums, "huge_bytes", json_null());
    if (replay->lacks_holds)
        (void)json_object_set_new(sums, "holds", json_null());
    return sums;
}

int top_replay(struct top *top)
{
    json_t *chosen = json_array(), *snapshot = json_copy(top->recorded), *row, *sums;
    struct replay_sums of_chosen = {.sums = MEMCLIENT_BUFFER_SUMS_INIT};
    size_t index;

    json_array_foreach(json_object_get(top->recorded, "buffers"), index, row) {
        if (!is_chosen(&top->filter, row))
            continue;
        replay_add(row, &of_chosen);
        (void)json_array_append(chosen, row);
    }
    top_sort_rows(chosen, top_sort_key(top->view == TOP_BUFFERS ? top->sort : TOP_BY_BYTES),
                  top->sort == TOP_BY_OLDEST);
    sums = replay_pack(&of_chosen);
    if (!snapshot || json_object_set_new(snapshot, "buffers", chosen) || json_object_set_new(snapshot, "sums", sums)) {
        json_decref(snapshot);
        return -ENOMEM;
    }
    json_decref(top->snapshot);
    top->snapshot = snapshot;
    return 0;
}
