/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From lines to the struct; keys.c has what the lines may say.
 *
 * libinih splits lines into section, key and value. It does not give line numbers to its handler, truncates long lines
 * and long section names silently, and skips a section without keys; so it gets its lines from our reader, which counts
 * and checks each before inih sees it.
 */

#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/printable.h"
#include "config/keys.h"
#include "config/value.h"

/* How much of a line and of a section's name inih keeps. */
#define LINE_BYTES    198
#define SECTION_BYTES 49

/* A configuration is written by hand; a larger file is something else. */
#define FILE_BYTES_MAX (1u << 20)
#define POOLS_MAX      256
#define USERS_MAX      4096
/* So many are worth a line each. */
#define MISTAKES_MAX 100

struct reader {
    struct config *config;
    FILE *text;
    config_complain *complain;
    void *userdata;
    unsigned line;
    unsigned mistakes;
    int error;        /* -ENOMEM */
    const char *kind; /* of the current section: "pool", "user", or the name of any other */
    void *named;      /* its pool, user or group */
    bool section_known;
    unsigned given[CONFIG_KEYS_MAX]; /* line of each key; those of sections with a name: of the current one */
};

__attribute__((format(printf, 3, 4))) static void mistake_at(struct reader *reader, unsigned line, const char *format,
                                                             ...)
{
    char what[512];
    char sentence[1024];
    va_list arguments;

    if (reader->mistakes > MISTAKES_MAX)
        return;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (reader->mistakes == MISTAKES_MAX)
        (void)snprintf(sentence, sizeof(sentence), "%.400s:%u: further mistakes, which are not listed",
                       reader->config->path, line);
    else if (line)
        (void)snprintf(sentence, sizeof(sentence), "%.400s:%u: %s", reader->config->path, line, what);
    else
        (void)snprintf(sentence, sizeof(sentence), "%.400s: %s", reader->config->path, what);
    reader->mistakes++;
    reader->complain(reader->userdata, printable_escape(sentence, sizeof(sentence)));
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

/* The section of that name, or the one whose name is most like it. */
static const char *nearest_section(const char *name)
{
    const char *best = NULL;
    unsigned least = UINT32_MAX;

    for (size_t i = 0; i < config_n_keys; i++) {
        unsigned distance = value_distance(name, config_keys[i].section);

        if (distance < least) {
            least = distance;
            best = config_keys[i].section;
        }
    }
    return best;
}

static bool is_pool_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n && !name[n] && n <= MEMORYD_POOL_NAME_MAX;
}

static void begin_named(struct reader *reader, const char *kind, void *named)
{
    for (size_t i = 0; i < config_n_keys; i++)
        if (!strcmp(config_keys[i].section, kind))
            reader->given[i] = 0;
    reader->kind = kind;
    reader->named = named;
    reader->section_known = true;
}

static void begin_pool(struct reader *reader, const char *name)
{
    struct config *config = reader->config;
    struct config_pool *pools, *pool;

    if (!is_pool_name(name)) {
        mistake_at(reader, reader->line,
                   "[pool %s]: not a name for a pool; letters, digits and the characters . _ - are allowed", name);
        return;
    }
    for (size_t i = 0; i < config->n_pools; i++) {
        if (!strcmp(config->pools[i].name, name)) {
            mistake_at(reader, reader->line, "[pool %s]: this pool is in line %u already; names must differ", name,
                       config->pools[i].line);
            return;
        }
    }
    if (config->n_pools == POOLS_MAX) {
        mistake_at(reader, reader->line, "[pool %s]: more than %d pools", name, POOLS_MAX);
        return;
    }
    pools = reallocarray(config->pools, config->n_pools + 1, sizeof(*pools));
    if (!pools) {
        reader->error = -ENOMEM;
        return;
    }
    config->pools = pools;
    pool = &pools[config->n_pools++];
    *pool = (struct config_pool){.line = reader->line, .pages = CONFIG_PAGES_BASE, .stock = {.bytes = CONFIG_NONE}};
    (void)snprintf(pool->name, sizeof(pool->name), "%s", name);
    begin_named(reader, "pool", pool);
}

/* What useradd takes, and domain users' names; or a number. */
static bool is_user_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@+$\\");

    return n && !name[n] && n <= CONFIG_USER_NAME_MAX && *name != '-';
}

static void begin_user(struct reader *reader, bool is_group, const char *name)
{
    struct config *config = reader->config;
    const char *kind = is_group ? "group" : "user";
    struct config_user *users, *user;

    if (!is_user_name(name)) {
        mistake_at(reader, reader->line, "[%s %s]: not a name of a %s, nor its number", kind, name, kind);
        return;
    }
    for (size_t i = 0; i < config->n_users; i++) {
        if (config->users[i].is_group == is_group && !strcmp(config->users[i].name, name)) {
            mistake_at(reader, reader->line, "[%s %s]: this %s is in line %u already", kind, name, kind,
                       config->users[i].line);
            return;
        }
    }
    if (config->n_users == USERS_MAX) {
        mistake_at(reader, reader->line, "[%s %s]: more than %d users and groups", kind, name, USERS_MAX);
        return;
    }
    users = reallocarray(config->users, config->n_users + 1, sizeof(*users));
    if (!users) {
        reader->error = -ENOMEM;
        return;
    }
    config->users = users;
    user = &users[config->n_users++];
    *user = (struct config_user){.is_group = is_group, .line = reader->line};
    for (unsigned i = 0; i < CONFIG_LIMIT_N; i++)
        user->limits[i] = CONFIG_UNSET;
    (void)snprintf(user->name, sizeof(user->name), "%s", name);
    begin_named(reader, "user", user);
}

/* `name` stands between the brackets. */
static void begin_section(struct reader *reader, const char *name)
{
    size_t word = strcspn(name, " ");
    const char *rest = name + word + strspn(name + word, " ");

    reader->named = NULL;
    reader->kind = NULL;
    reader->section_known = false;
    if (!strncmp(name, "pool ", 5))
        begin_pool(reader, rest);
    else if (!strncmp(name, "user ", 5) || !strncmp(name, "group ", 6))
        begin_user(reader, *name == 'g', rest);
    else if (!strcmp(name, "pool") || !strcmp(name, "user") || !strcmp(name, "group"))
        mistake_at(reader, reader->line, "[%s]: a %s needs a name: [%s NAME]", name, name, name);
    else if (!strcmp(name, nearest_section(name)))
        reader->section_known = true;
    else
        mistake_at(reader, reader->line,
                   "[%s]: no such section; did you mean [%s]? There are topology, pools, pool NAME, arena, limits, "
                   "user NAME, group NAME, session, broker and metrics",
                   name, nearest_section(name));
}

static void unknown_key(struct reader *reader, const char *section, const char *name)
{
    const struct key *here = NULL, *elsewhere = NULL;
    unsigned least_here = UINT32_MAX, least_elsewhere = UINT32_MAX;

    for (size_t i = 0; i < config_n_keys; i++) {
        bool is_here = !strcmp(config_keys[i].section, section);
        unsigned distance = value_distance(name, config_keys[i].name);
        unsigned *least = is_here ? &least_here : &least_elsewhere;

        if (distance >= *least)
            continue;
        *least = distance;
        *(is_here ? &here : &elsewhere) = &config_keys[i];
    }
    if (!least_elsewhere)
        mistake_at(reader, reader->line, "[%s] %s: no such key here; it belongs in [%s]", section, name,
                   elsewhere->section);
    else if (least_elsewhere < least_here)
        mistake_at(reader, reader->line, "[%s] %s: no such key; did you mean %s in [%s]?", section, name,
                   elsewhere->name, elsewhere->section);
    else
        mistake_at(reader, reader->line, "[%s] %s: no such key; did you mean %s?", section, name, here->name);
}

static int on_value(void *userdata, const char *section, const char *name, const char *value)
{
    struct reader *reader = userdata;
    const char *kind = reader->kind ? reader->kind : section;
    char text[256];

    if (!*section) {
        mistake_at(reader, reader->line, "%s: a key before any [section]", name);
        return 1;
    }
    if (!reader->section_known)
        return 1; /* the section was a mistake */
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct key *key = &config_keys[i];

        if (strcmp(key->section, kind) != 0 || strcmp(key->name, name) != 0)
            continue;
        if (reader->given[i])
            mistake_at(reader, reader->line, "[%s] %s: given in line %u already", section, name, reader->given[i]);
        else if (!key_store(key, reader->config, reader->named, value))
            mistake_at(reader, reader->line, "[%s] %s: \"%s\" is not %s", section, name, value,
                       key_takes(key, text, sizeof(text)));
        reader->given[i] = reader->line;
        return 1;
    }
    unknown_key(reader, kind, name);
    return 1;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Removes blanks at both ends. */
static char *trim_line(char *line)
{
    char *end;

    line += strspn(line, " \t");
    end = line + strlen(line);
    while (end > line && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    return line;
}

static void read_section(struct reader *reader, char *line)
{
    char *end = strchr(line, ']');
    char *rest;

    if (!end) {
        mistake_at(reader, reader->line, "%s: the bracket is not closed", line);
        return;
    }
    rest = end + 1 + strspn(end + 1, " \t");
    if (*rest && *rest != ';' && *rest != '#')
        mistake_at(reader, reader->line, "%s: something after the bracket; keys need lines of their own", line);
    *end = '\0';
    if (strlen(line + 1) > SECTION_BYTES) {
        mistake_at(reader, reader->line, "[%s]: longer than %d characters", line + 1, SECTION_BYTES);
        reader->named = NULL;
        reader->kind = NULL;
        reader->section_known = false;
    } else {
        begin_section(reader, line + 1);
    }
    *end = ']';
}

/* inih's fgets(): returns only lines that inih can hold. */
static char *next_line(char *buffer, int size, void *userdata)
{
    struct reader *reader = userdata;

    while (!reader->error && reader->mistakes <= MISTAKES_MAX) {
        char whole[4096];
        char *line;

        if (!fgets(whole, sizeof(whole), reader->text))
            return NULL;
        reader->line++;
        if (strlen(whole) == sizeof(whole) - 1 && whole[sizeof(whole) - 2] != '\n') {
            mistake_at(reader, reader->line, "a line longer than %zu bytes; no configuration has that", sizeof(whole));
            return NULL;
        }
        line = trim_line(whole);
        if (!*line || *line == ';' || *line == '#')
            continue;
        if (strlen(line) > LINE_BYTES || (int)strlen(line) + 2 > size) {
            mistake_at(reader, reader->line, "a line longer than %d bytes", LINE_BYTES);
            continue;
        }
        if (*line == '[')
            read_section(reader, line);
        else if (!strpbrk(line, "=:")) {
            mistake_at(reader, reader->line, "%s: neither a [section] nor a key = value", line);
            continue;
        }
        memcpy(buffer, line, strlen(line) + 1);
        return buffer;
    }
    return NULL;
}

/* ---- after all lines --------------------------------------------------------------------------------------------- */

static void check_pool(struct reader *reader, const struct config_pool *pool)
{
    if (pool->n_weights && pool->placement != CONFIG_PLACEMENT_SPLIT)
        mistake_at(reader, pool->line, "[pool %s] weights: only for placement = split", pool->name);
    if (pool->placement == CONFIG_PLACEMENT_SPLIT && pool->n_weights && pool->n_weights != pool->n_nodes)
        mistake_at(reader, pool->line, "[pool %s] weights: %u of them for %u nodes; one for each node is needed",
                   pool->name, pool->n_weights, pool->n_nodes);
    if (pool->part_size && pool->placement != CONFIG_PLACEMENT_INTERLEAVE)
        mistake_at(reader, pool->line, "[pool %s] part_size: only for placement = interleave", pool->name);
    if (pool->part_size & 4095)
        mistake_at(reader, pool->line, "[pool %s] part_size: not a multiple of 4K", pool->name);
    if (pool->page_size && pool->pages != CONFIG_PAGES_HUGETLB)
        mistake_at(reader, pool->line, "[pool %s] page_size: only for pages = hugetlb", pool->name);
    if (pool->page_size && !is_power_of_two(pool->page_size))
        mistake_at(reader, pool->line, "[pool %s] page_size: not a power of two", pool->name);
    if (pool->lazy && pool->pages == CONFIG_PAGES_HUGETLB)
        mistake_at(reader, pool->line,
                   "[pool %s] commit: lazy is only for base and thp pages; huge pages that "
                   "are missing at first touch would kill the process",
                   pool->name);
    if (pool->charge == CONFIG_CHARGE_CLIENT && pool->pages == CONFIG_PAGES_HUGETLB)
        mistake_at(reader, pool->line,
                   "[pool %s] charge: client is only for base and thp pages; no limit of memory counts huge pages",
                   pool->name);
    if (pool->charge == CONFIG_CHARGE_BROKER && pool->lazy)
        mistake_at(reader, pool->line,
                   "[pool %s] charge: with commit = lazy, who touches a page first pays for it, and never the broker",
                   pool->name);
}

static void check_whole(struct reader *reader)
{
    struct config *config = reader->config;
    uint64_t end;

    for (size_t i = 0; i < config->n_pools; i++)
        check_pool(reader, &config->pools[i]);
    if (config->arena_base & (GIB - 1) || config->arena_size & (GIB - 1))
        mistake_at(reader, 0, "[arena] base and size: multiples of 1G (0x40000000) are needed");
    if (!checked_add_u64(config->arena_base, config->arena_size, &end) || end > CONFIG_ADDRESS_TOP)
        mistake_at(reader, 0, "[arena] base and size: the arena ends above 0x%llx, where no process can map it",
                   (unsigned long long)CONFIG_ADDRESS_TOP);
    for (unsigned i = 0; i < CONFIG_LIMIT_N; i++)
        if (config->session_limits[i] != CONFIG_NONE && config->session_limits[i] > config->uid_limits[i])
            mistake_at(reader, 0, "[limits]: a session may have more than its user (%llu, %llu)",
                       (unsigned long long)config->session_limits[i], (unsigned long long)config->uid_limits[i]);
}

static struct config *config_defaults(void)
{
    struct config *config = calloc(1, sizeof(*config));

    if (!config)
        return NULL;
    config->capacity.percent = 50;
    config->charge = CONFIG_CHARGE_BROKER;
    config->stock.bytes = CONFIG_NONE;
    config->metadata.bytes = CONFIG_NONE;
    config->arena_base = UINT64_C(0x400000000000);
    config->arena_size = 16 * TIB;
    config->connections = 4096;
    for (unsigned i = 0; i < CONFIG_LIMIT_N; i++)
        config->uid_limits[i] = config->session_limits[i] = CONFIG_NONE;
    config->uid_limits[CONFIG_LIMIT_TOKENS] = 1 << 20;
    config->uid_limits[CONFIG_LIMIT_RESERVATIONS] = 1 << 20;
    config->uid_limits[CONFIG_LIMIT_SESSIONS] = 2048;
    config->uid_limits[CONFIG_LIMIT_NAMES] = 1 << 17;
    config->uid_limits[CONFIG_LIMIT_QUEUED_BYTES] = 64 << 20;
    config->session_limits[CONFIG_LIMIT_QUEUED_BYTES] = 1 << 18;
    config->session_limits[CONFIG_LIMIT_FDS_IN_FLIGHT] = 256;
    config->grace_ms = 60000;
    config->handshake_ms = 10000;
    config->stall_ms = 30000;
    config->idle_exit_ms = 60000;
    config->spin = true;
    return config;
}

static int read_text(struct reader *reader)
{
    const struct config *config = reader->config;
    _cleanup_fclose_ FILE *text = fmemopen(config->text, config->text_size, "r");
    int r;

    if (!text)
        return -ENOMEM;
    /* it would hide the rest of its line */
    if (config->text_size && memchr(config->text, 0, config->text_size)) {
        mistake_at(reader, 0, "there is a NUL byte in it, so it is no text");
        return CONFIG_E_MISTAKES;
    }
    reader->text = text;
    r = ini_parse_stream(next_line, reader, on_value, reader);
    if (reader->error)
        return reader->error;
    if (r > 0 && !reader->mistakes)
        mistake_at(reader, reader->line, "neither a [section] nor a key = value");
    check_whole(reader);
    return reader->mistakes ? CONFIG_E_MISTAKES : 0;
}

/* Reads all of it at once, so that the text that is kept is the one that was parsed. */
static int read_file(struct reader *reader)
{
    struct config *config = reader->config;
    _cleanup_close_ int fd = open(config->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        mistake_at(reader, 0, "cannot be read: %s", strerror(errno));
        return CONFIG_E_UNREADABLE;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
        mistake_at(reader, 0, "not a file of at most 1M");
        return CONFIG_E_UNREADABLE;
    }
    /* it says who may have what, and the broker may be root's */
    if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & S_IWOTH) {
        mistake_at(reader, 0, "can be written by others than root and uid %u; let it be theirs (chown, chmod o-w)",
                   (unsigned)geteuid());
        return CONFIG_E_UNREADABLE;
    }
    config->text = malloc(FILE_BYTES_MAX);
    if (!config->text)
        return -ENOMEM;
    for (ssize_t n; config->text_size < FILE_BYTES_MAX; config->text_size += (size_t)n) {
        n = read(fd, config->text + config->text_size, FILE_BYTES_MAX - config->text_size);
        if (n < 0) {
            mistake_at(reader, 0, "cannot be read: %s", strerror(errno));
            return CONFIG_E_UNREADABLE;
        }
        if (!n)
            break;
    }
    return 0;
}

static int copy_text(struct config *config, const char *text, size_t size)
{
    config->text = malloc(size + 1);
    if (!config->text)
        return -ENOMEM;
    if (size)
        memcpy(config->text, text, size);
    config->text_size = size;
    return 0;
}

int config_parse(struct config **ret, const char *path, const char *text, size_t size, config_complain *complain,
                 void *userdata)
{
    _cleanup_(config_freep) struct config *config = config_defaults();
    struct reader reader = {.config = config, .complain = complain, .userdata = userdata};
    int r = 0;

    if (!config)
        return -ENOMEM;
    if (path) {
        config->path = strdup(path);
        if (!config->path)
            return -ENOMEM;
        r = text ? copy_text(config, text, size) : read_file(&reader);
        if (!r)
            r = read_text(&reader);
    }
    if (r)
        return r;
    *ret = steal_ptr(&config);
    return 0;
}

int config_load(struct config **ret, const char *path, config_complain *complain, void *userdata)
{
    return config_parse(ret, path, NULL, 0, complain, userdata);
}

struct config *config_free(struct config *config)
{
    if (config) {
        free(config->path);
        free(config->text);
        free(config->pools);
        free(config->users);
        free(config);
    }
    return NULL;
}

bool config_key(size_t index, const char **section, const char **key)
{
    if (index >= config_n_keys)
        return false;
    *section = config_keys[index].section;
    *key = config_keys[index].name;
    return true;
}
