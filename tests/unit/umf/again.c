/* SPDX-License-Identifier: Apache-2.0 */
/* See again.h. */
#include "tests/unit/umf/again.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

/* The link is read and not executed, since under valgrind it leads to valgrind. */
static void this_program(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

    assert_true(n > 0);
    path[n] = '\0';
}

void beside_us(char *path, size_t size, const char *file)
{
    char here[PATH_MAX];

    this_program(here);
    *strrchr(here, '/') = '\0';
    (void)snprintf(path, size, "%s/%s", here, file);
    assert_ok(access(path, R_OK));
}

int run_again(const char *library_path, const char *argument)
{
    const char *now = getenv("LD_LIBRARY_PATH");
    char path[PATH_MAX], paths[4 * PATH_MAX];
    int status = -1;
    pid_t pid;

    this_program(path);
    (void)snprintf(paths, sizeof(paths), "%s%s%s", library_path, now ? ":" : "", now ? now : "");
    pid = fork();
    assert_ok(pid);
    if (!pid) {
        if (setenv("LD_LIBRARY_PATH", paths, 1))
            _exit(1);
        (void)execl(path, path, argument, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
