/* SPDX-License-Identifier: Apache-2.0 */

/*
 * memoryd: its options. What they do is in app/.
 */

#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "app/app.h"
#include "base/cleanup.h"
#include "keeper/start.h"
#include "log/log.h"

static const char help[] =
    "Usage: memoryd [--socket PATH] [--config FILE] [--autostart]\n"
    "       memoryd --check-config [--config FILE]\n"
    "\n"
    "The memory broker: owns a machine's shareable memory and allocates it to processes.\n"
    "It runs in the foreground.\n"
    "\n"
    "  --socket PATH    listen there; by default the socket that systemd passes, else\n"
    "                   /run/memoryd/memoryd.sock for root, and for others\n"
    "                   $XDG_RUNTIME_DIR/memoryd/memoryd.sock\n"
    "  --config FILE    read FILE; by default memoryd/memoryd.conf in " SYSCONFDIR " for\n"
    "                   the system's broker and in ~/.config for a private one, if it is there\n"
    "  --check-config   only report mistakes in the configuration\n"
    "  --autostart      a private broker in the background; returns when it is ready; it\n"
    "                   exits some time after its last client has gone\n"
    "  --version        print the version\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong use, 3 mistakes in the configuration,\n"
    "4 a broker is already running there, 5 the ledger is of another version. See memoryd(8) and memoryd.conf(5).\n";

enum {
    OPTION_SOCKET = 256,
    OPTION_CONFIG,
    OPTION_CHECK,
    OPTION_AUTOSTART,
    OPTION_VERSION,
    OPTION_HELP,
    OPTION_BROKER,
    OPTION_FD_STASH,
};

static const struct option options[] = {
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"autostart", no_argument, NULL, OPTION_AUTOSTART},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
    /* for this program's own use, see keeper/start.h */
    {START_OPTION_BROKER, required_argument, NULL, OPTION_BROKER},
    {START_OPTION_FD_STASH, required_argument, NULL, OPTION_FD_STASH},
    {NULL, 0, NULL, 0},
};

static int usage_error(void)
{
    (void)fputs("Try \"memoryd --help\".\n", stderr);
    return EXIT_USAGE;
}

/* The parent may have closed them, and a descriptor of ours in their place would be taken for one of them. */
static void ensure_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    (void)fd_close(fd);
    /* for the broker, too */
    for (fd = 0; fd <= STDERR_FILENO; fd++)
        (void)fcntl(fd, F_SETFD, 0);
}

int main(int argc, char **argv)
{
    struct app_options app = {
        .sysconfdir = SYSCONFDIR,
        .argv = argv,
        .broker = -1,
        .fd_stash = {-1, -1},
    };
    bool check = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (option) {
        case OPTION_SOCKET:
            app.socket = optarg;
            break;
        case OPTION_CONFIG:
            app.config = optarg;
            break;
        case OPTION_CHECK:
            check = true;
            break;
        case OPTION_AUTOSTART:
            app.autostart = true;
            break;
        case OPTION_VERSION:
            (void)puts("memoryd " PACKAGE_VERSION);
            return EXIT_OK;
        case OPTION_HELP:
            (void)fputs(help, stdout);
            return EXIT_OK;
        case OPTION_BROKER:
            if (!start_read_option(optarg, &app.broker, 1))
                return usage_error();
            break;
        case OPTION_FD_STASH:
            if (!start_read_option(optarg, app.fd_stash, 2))
                return usage_error();
            break;
        default:
            return usage_error();
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "memoryd: \"%s\" is not an option\n", argv[optind]);
        return usage_error();
    }
    ensure_standard_descriptors();
    log_init();
    if (check)
        return app_check_config(&app);
    /* executed through /proc, the process would be called "exe" */
    (void)prctl(PR_SET_NAME, "memoryd");
    return app.broker >= 0 ? app_serve(&app) : app_keep(&app);
}
