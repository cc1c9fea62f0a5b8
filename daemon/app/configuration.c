/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which configuration is in force: that of the file or, when there are mistakes in it, the last good one.
 *
 * The keeper holds the text of the last good one in a sealed memfd, so each next broker gets it, through an upgrade and
 * through the service manager's store. So a mistake in the file never takes a service down that has served: it is
 * logged, and the configuration stays as it was. Only a very first start has nothing to fall back on. A service manager
 * would start it again at once, give up after a few attempts, and give up its socket, too. So where there is one, the
 * broker waits for a while until the file is changed, and then tries again.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/operations.h"
#include "log/log.h"
#include "sys/sys.h"

/* How long a first start waits for the file to be corrected, and how often it looks. With so long a wait the units stay
 * far below their limit of starts. */
#define MEND_MS 5000
#define LOOK_MS 100
/* A path and the largest file. */
#define LAST_GOOD_MAX (PATH_MAX + (1 << 20))

static void say_mistake(void *userdata, const char *sentence)
{
    log_error("%s", sentence);
}

/* The path of the file, looked up each time, since the default one may have come or gone. */
static int find_file(const struct app *app, char **ret)
{
    const char *path = app->options->config;

    *ret = path ? strdup(path) : settings_config_path(app->options, app->private);
    return path && !*ret ? -ENOMEM : 0;
}

/* As config_load(). */
static int load_file(const struct app *app, struct config **ret, config_complain *complain, void *userdata)
{
    _cleanup_free_ char *path = NULL;
    int r = find_file(app, &path);

    return r ? r : config_load(ret, path, complain, userdata);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* Makes the pools of the configuration on this machine. 0; EXIT_CONFIG, with the reason, if it does not fit;
 * EXIT_FAILED. */
static int make_pools(const struct config *config, struct topology *topology, struct pools **ret,
                      struct problem *problem)
{
    _cleanup_free_ struct pool_config *declared = NULL;
    struct pools_config pools;
    int r = topology_load(topology, (uint32_t)config->simulate_nodes);

    if (r < 0) {
        log_error("cannot find out what memory this machine has: %s", strerror(-r));
        return EXIT_FAILED;
    }
    r = settings_pools(config, &pools, &declared);
    if (!r)
        r = pools_new(ret, topology, &pools, problem);
    if (r < 0)
        log_error("cannot make the pools: %s", strerror(-r));
    return r < 0 ? EXIT_FAILED : r ? EXIT_CONFIG : EXIT_OK;
}

static int start_with(struct app *app, struct config *config)
{
    struct problem problem = PROBLEM_NULL;
    int status = make_pools(config, &app->topology, &app->pools, &problem);

    if (status == EXIT_CONFIG)
        log_error("%s: %s", config->path ? config->path : "the default configuration", problem.sentence);
    if (status)
        config_free(config);
    else
        app->config = config;
    return status;
}

/* ---- the last good one ------------------------------------------------------------------------------------------- */

/* Writes the path with its 0, then the text; just a 0 if there was no file. A descriptor or a negative errno. */
static int write_last_good(const struct config *config)
{
    const char *path = config->path ? config->path : "";
    size_t n = strlen(path) + 1;
    _cleanup_close_ int fd = sys_memfd_new("memoryd:configuration", 0);

    if (fd < 0 || sys->pwrite(fd, path, n, 0) != (ssize_t)n)
        return -(errno ? errno : EIO);
    if (config->text_size && sys->pwrite(fd, config->text, config->text_size, (off_t)n) != (ssize_t)config->text_size)
        return -(errno ? errno : EIO);
    if (sys->add_seals(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return steal_fd(&fd);
}

void configuration_hand_on(struct app *app)
{
    int fd = write_last_good(app->config);
    int r = fd < 0 ? fd : keeper_hold(app->keeper, KEEPER_CONFIG, 0, fd);

    if (r) {
        log_warning("the configuration cannot be kept for the next broker: %s", strerror(-r));
        (void)fd_close(fd);
        return;
    }
    (void)fd_close(app->inherited.config);
    app->inherited.config = fd;
}

static int read_last_good(int fd, struct config **ret)
{
    struct stat st;
    _cleanup_free_ char *bytes = NULL;
    size_t size, n;

    if (fstat(fd, &st) < 0 || st.st_size < 1 || st.st_size > LAST_GOOD_MAX)
        return EXIT_CONFIG;
    size = (size_t)st.st_size;
    bytes = malloc(size);
    if (!bytes)
        return EXIT_FAILED;
    if (pread(fd, bytes, size, 0) != (ssize_t)size)
        return EXIT_CONFIG;
    n = strnlen(bytes, size) + 1;
    if (n > size)
        return EXIT_CONFIG;
    /* another version of this program may find mistakes in it */
    return config_parse(ret, *bytes ? bytes : NULL, bytes + n, size - n, say_mistake, NULL) ? EXIT_CONFIG : EXIT_OK;
}

static int start_with_last_good(struct app *app, const char *path)
{
    struct config *config = NULL;
    int status = app->inherited.config < 0 ? EXIT_CONFIG : read_last_good(app->inherited.config, &config);

    if (!status)
        status = start_with(app, config);
    if (status)
        return status;
    app->config_stale = true;
    log_error("the last good configuration stays in force; correct %s and have it read again (memctl "
              "reload)",
              path ? path : "it");
    return EXIT_OK;
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

/* All 0 if there is no such file. */
static struct stat stat_of(const char *path)
{
    struct stat st = {0};

    return path && !stat(path, &st) ? st : (struct stat){0};
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* With a service manager: waits for a while. True when the file has changed. */
static bool is_mended(const struct app *app, const char *path, const struct stat *before)
{
    uint64_t deadline = deadline_after_ms(MEND_MS);

    if (app->inherited.fd_stash[0] < 0)
        return false;
    log_notice("waiting for %s to change", path);
    do {
        struct stat now = stat_of(path);

        if (!is_unchanged(before, &now))
            return true;
        /* all that the keeper sends now is that the start is over */
        if (poll(&(struct pollfd){.fd = keeper_link_fd(app->keeper), .events = POLLIN}, 1, LOOK_MS))
            return false;
    } while (!deadline_passed(deadline, clock_now_ns()));
    return false;
}

int configuration_start(struct app *app)
{
    for (;;) {
        _cleanup_free_ char *path = NULL;
        struct config *config = NULL;
        struct stat seen;
        int r = find_file(app, &path);
        int status;

        seen = stat_of(path);
        if (!r)
            r = config_load(&config, path, say_mistake, NULL);
        if (r < 0) {
            log_error("no memory for the configuration");
            return EXIT_FAILED;
        }
        status = r ? EXIT_CONFIG : start_with(app, config);
        if (status == EXIT_CONFIG)
            status = start_with_last_good(app, path);
        if (status != EXIT_CONFIG || !path || !is_mended(app, path, &seen))
            return status;
    }
}

static void say_to_caller(void *userdata, const char *sentence)
{
    if (log_is_journal())
        log_error("%s", sentence);
    else
        /* no prefix, so that editors find file and line */
        (void)fprintf(stderr, "%s\n", sentence);
}

int app_check_config(const struct app_options *options)
{
    struct app app = {.options = options};
    struct config *config = NULL;
    int r;

    app.private = options->socket || options->autostart ? place_is_private(options, options->socket) : geteuid() != 0;
    r = load_file(&app, &config, say_to_caller, NULL);
    config_free(config);
    if (r < 0)
        log_error("no memory for the configuration");
    return r < 0 ? EXIT_FAILED : r ? EXIT_CONFIG : EXIT_OK;
}

void configuration_show(struct app *app)
{
    app->rpc.config = app->config->path ? app->config->path : "";
    app->rpc.config_stale = app->config_stale;
}

static void ignore_mistake(void *userdata, const char *sentence) {}

char *configuration_metrics(const struct app *app)
{
    struct config *config = NULL;
    char *listen;

    if (load_file(app, &config, ignore_mistake, NULL))
        return NULL;
    listen = strdup(config->metrics);
    config_free(config);
    return listen;
}

/* ---- reload ------------------------------------------------------------------------------------------------------ */

static void add_line(struct reload_result *result, enum reload_what what, const char *text)
{
    struct reload_line *line;

    result->n_of[what]++;
    if (result->n_lines == RELOAD_LINES_MAX)
        return;
    line = &result->lines[result->n_lines++];
    line->what = what;
    (void)snprintf(line->text, sizeof(line->text), "%.*s", (int)sizeof(line->text) - 1, text);
}

static void note_mistake(void *userdata, const char *sentence)
{
    log_error("%s", sentence);
    add_line(userdata, RELOAD_MISTAKE, sentence);
}

static void note_difference(void *userdata, const char *key, bool live)
{
    if (live)
        log_notice("%s has changed", key);
    else
        log_warning("%s has changed in the file, but takes effect only after a restart (memctl upgrade, or "
                    "systemctl restart)",
                    key);
    add_line(userdata, live ? RELOAD_APPLIED : RELOAD_RESTART, key);
}

/* A configuration for which the next broker could not make pools is a mistake already. */
static bool fits_machine(const struct config *config, struct reload_result *result)
{
    _cleanup_free_ struct topology *topology = malloc(sizeof(*topology));
    struct problem problem = PROBLEM_NULL;
    struct pools *pools = NULL;
    char sentence[PATH_MAX + sizeof(problem.sentence)];
    int status = topology ? make_pools(config, topology, &pools, &problem) : EXIT_FAILED;

    pools_free(pools);
    if (status == EXIT_CONFIG)
        (void)snprintf(sentence, sizeof(sentence), "%s: %s", config->path ? config->path : "the defaults",
                       problem.sentence);
    else if (status)
        (void)snprintf(sentence, sizeof(sentence), "the pools of the configuration cannot be tried out");
    if (status)
        note_mistake(result, sentence);
    return !status;
}

static void configuration_apply(struct app *app)
{
    const struct config *config = app->config;
    struct account_limits before;
    struct net_limits net;

    settings_accounts(app, &before);
    settings_net(app, &net);
    broker_set_limits(app->broker, &app->limits);
    free((void *)before.policies);
    broker_set_grace(app->broker, config->grace_ms);
    broker_refuse_overflow_uid(app->broker, settings_refuse_overflow_uid(app));
    net_set_limits(app->net, &net);
    pools_set_base_pages(app->pools, config->base_pages);
    settings_allow(config, app->pools);
    loop_set_spin(app);
    if (!app->net->n_connections)
        loop_arm_idle(app);
}

static void note_start(void *userdata, const char *key, bool live)
{
    bool *differs = userdata;

    *differs = *differs || !live;
}

/* Have pools and what they are made of stayed? What is in force fits the machine. */
static bool is_as_started(const struct app *app, const struct config *config)
{
    bool differs = false;

    config_compare(app->config, config, note_start, &differs);
    return !differs;
}

/* Takes `config`. */
static int configuration_replace(struct app *app, struct config *config, struct reload_result *result)
{
    struct config *before = app->config;
    int r;

    config_compare(before, config, note_difference, result);
    r = config_keep_started(config, before);
    if (r) {
        config_free(config);
        return r;
    }
    app->config = config;
    app->config_stale = false;
    config_free(before);
    configuration_hand_on(app);
    configuration_apply(app);
    return 0;
}

static void fill_result(struct app *app, struct reload_result *result)
{
    const char *path = app->config->path;

    (void)snprintf(result->path, sizeof(result->path), "%s", path ? path : "");
    if (result->n_of[RELOAD_MISTAKE]) {
        app->config_stale = true;
        log_error("the configuration is unchanged");
    } else if (path)
        log_notice("%s was read again: keys that have changed: %u, and after a restart %u more", path,
                   result->n_of[RELOAD_APPLIED], result->n_of[RELOAD_RESTART]);
    else
        log_notice("there is no configuration file; the defaults are in force: keys that have changed: %u, and after a "
                   "restart %u more",
                   result->n_of[RELOAD_APPLIED], result->n_of[RELOAD_RESTART]);
}

void configuration_reload(void *userdata, struct reload_result *result)
{
    struct app *app = userdata;
    struct config *config = NULL;
    int r;

    *result = (struct reload_result){.n_lines = 0};
    r = load_file(app, &config, note_mistake, result);
    if (!r && (is_as_started(app, config) || fits_machine(config, result)))
        r = configuration_replace(app, steal_ptr(&config), result);
    config_free(config);
    if (r < 0)
        note_mistake(result, "no memory for the configuration");
    fill_result(app, result);
    configuration_show(app);
}

/* ---- upgrade ----------------------------------------------------------------------------------------------------- */

int configuration_check(void *userdata, struct problem *problem)
{
    struct config *config = NULL;
    int r = load_file(userdata, &config, ignore_mistake, NULL);

    if (!r) {
        struct reload_result *result = calloc(1, sizeof(*result));

        if (result && !fits_machine(config, result))
            r = refuse(problem, STATUS_NOT_SUPPORTED, "%.180s; the running broker is unchanged", result->lines[0].text);
        free(result);
    }
    config_free(config);
    return r == STATUS_NOT_SUPPORTED ? r : 0;
}

static void note_first(void *userdata, const char *sentence)
{
    char *first = userdata;

    if (!*first)
        (void)snprintf(first, CONFIGURATION_SENTENCE_MAX, "%s", sentence);
}

const char *configuration_mistake(struct app *app, char sentence[CONFIGURATION_SENTENCE_MAX])
{
    struct config *config = NULL;

    *sentence = '\0';
    (void)load_file(app, &config, note_first, sentence);
    config_free(config);
    if (!*sentence)
        (void)snprintf(sentence, CONFIGURATION_SENTENCE_MAX, "it finds mistakes in the configuration");
    return sentence;
}
