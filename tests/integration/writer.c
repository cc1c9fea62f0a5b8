/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that must not notice anything: writer NAME. The scripts that kill and exchange brokers run it meanwhile.
 *
 * It maps a buffer under NAME and writes its turns into it: a counter at the start, which others read to see that it
 * goes on, and behind it pages whose every word follows from the turn in which it was written. Each turn it writes one
 * page, proves another, and does once around what a client does: allocates a small buffer, finds it empty and at home,
 * fills it, shares it, opens the token, sees one memory, gives all back, asks for news of the large one.
 *
 * It tolerates no error at all: the first one ends it, with a sentence and status 1. On SIGTERM it proves every page
 * once more, publishes the buffer, sees that nobody can write to it any more, and ends with status 0. NAME stays bound.
 */
#include <errno.h>
#include <inttypes.h>
#include <memclient/memclient.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGES = 1024, PAGE_WORDS = 512, SMALL = 3 * 4096 };

/* After each turn: whoever watches for minutes needs no processor of its own. */
#define REST_NS 1000000L

struct pages {
    volatile uint64_t turns; /* done; in page 0, which has nothing else */
    uint64_t padding[PAGE_WORDS - 1];
    uint64_t words[PAGES][PAGE_WORDS];
};

static volatile sig_atomic_t terminated;
static uint64_t slowest_ms;

static _Noreturn __attribute__((format(printf, 1, 2))) void untrue(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("writer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

#define must(expression)                                              \
    do {                                                              \
        if (!(expression))                                            \
            untrue("line %d is not true: %s", __LINE__, #expression); \
    } while (0)

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void note_time(uint64_t begin)
{
    uint64_t took = now_ms() - begin;

    if (took > slowest_ms)
        slowest_ms = took;
}

/* a call of the library that has to succeed, however long it takes */
#define did(call)                                                                                                   \
    do {                                                                                                            \
        uint64_t begin_ = now_ms();                                                                                 \
        int r_ = (call);                                                                                            \
        if (r_ < 0)                                                                                                 \
            untrue("line %d: %s: %s (%s, after %" PRIu64 " ms)", __LINE__, #call, memclient_error(), strerror(-r_), \
                   now_ms() - begin_);                                                                              \
        note_time(begin_);                                                                                          \
    } while (0)

/* ---- the pages --------------------------------------------------------------------------------------------------- */

static uint64_t word_of(uint64_t turn, size_t i)
{
    return turn ? (turn * PAGE_WORDS + i) * UINT64_C(0x9e3779b97f4a7c15) : 0;
}

/* The last turn before `turns` in which this page was written; 0 if it never was. */
static uint64_t written_in(size_t page, uint64_t turns)
{
    uint64_t behind = (turns + PAGES - page) % PAGES;

    return turns >= behind ? turns - behind : 0;
}

static void write_page(struct pages *pages, uint64_t turn)
{
    for (size_t i = 0; i < PAGE_WORDS; i++)
        pages->words[turn % PAGES][i] = word_of(turn, i);
    pages->turns = turn;
}

static void prove_page(const struct pages *pages, size_t page)
{
    uint64_t turn = written_in(page, pages->turns);

    for (size_t i = 0; i < PAGE_WORDS; i++)
        if (pages->words[page][i] != word_of(turn, i))
            untrue("page %zu, written in turn %" PRIu64 ", has other bytes after turn %" PRIu64, page, turn,
                   pages->turns);
}

static void prove_all(const struct pages *pages)
{
    for (size_t page = 0; page < PAGES; page++)
        prove_page(pages, page);
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

/* Made, shared, opened, given back: everything is as if no broker had ever ended. */
static void use_small_buffer(uint64_t turn)
{
    struct memclient_share_options reading = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *buf, *opened;
    struct memclient_token token;
    uint64_t *words;
    void *address;

    did(memclient_alloc(NULL, SMALL, NULL, &buf));
    did(memclient_map(buf, NULL, &address));
    must(address == memclient_buffer_home(buf));
    words = address;
    for (size_t i = 0; i < SMALL / sizeof(*words); i++) {
        must(!words[i]);
        words[i] = word_of(turn, i);
    }
    reading.rights = MEMCLIENT_READ;
    did(memclient_share(buf, &reading, &token));
    did(memclient_open_token(NULL, &token, 0, &opened));
    must(memclient_buffer_id(opened) == memclient_buffer_id(buf));
    memclient_buffer_unref(opened);
    did(memclient_revoke_token(NULL, &token));
    for (size_t i = 0; i < SMALL / sizeof(*words); i++)
        must(words[i] == word_of(turn, i));
    did(memclient_unmap(NULL, address, 0));
    memclient_buffer_unref(buf);
}

static void do_turn(struct memclient_buffer *buf, struct pages *pages)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    uint64_t turn = pages->turns + 1;

    write_page(pages, turn);
    prove_page(pages, (size_t)(turn * 7 % PAGES));
    use_small_buffer(turn);
    did(memclient_buffer_query(buf, &info));
    must(info.id == memclient_buffer_id(buf) && info.state == MEMCLIENT_BUFFER_STATE_LIVE && info.holds >= 1 &&
         info.names == 1 && info.length == sizeof(*pages) && info.address == (uintptr_t)pages);
}

static void publish(struct memclient_buffer *buf, const struct pages *pages)
{
    struct memclient_map_options writable = MEMCLIENT_MAP_OPTIONS_INIT;
    void *address;

    did(memclient_publish(buf, 0));
    must(memclient_buffer_flags(buf) & MEMCLIENT_BUFFER_PUBLISHED);
    writable.access = MEMCLIENT_READ | MEMCLIENT_WRITE;
    writable.flags = MEMCLIENT_MAP_NOT_HOME;
    must(memclient_map(buf, &writable, &address) < 0);
    prove_all(pages);
}

static void on_signal(int signal)
{
    terminated = signal;
}

int main(int argc, char **argv)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct memclient_buffer *buf;
    void *address;

    if (argc != 2) {
        fprintf(stderr, "usage: writer NAME\n");
        return 2;
    }
    sigaction(SIGTERM, &action, NULL);
    options.name = argv[1];
    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    did(memclient_alloc(NULL, sizeof(struct pages), &options, &buf));
    did(memclient_map(buf, NULL, &address));
    while (!terminated) {
        do_turn(buf, address);
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
    prove_all(address);
    publish(buf, address);
    printf("writer: %" PRIu64 " turns without an error; the slowest call took %" PRIu64 " ms\n",
           ((struct pages *)address)->turns, slowest_ms);
    did(memclient_unmap(NULL, address, 0));
    memclient_buffer_unref(buf);
    return 0;
}
