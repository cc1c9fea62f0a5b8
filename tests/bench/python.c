/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of 64 MiB through a multiprocessing.Queue, until the other process has looked at both ends. The rival is
 * multiprocessing's SharedMemory, whose name goes through the queue, and once the array itself, as Python pickles it.
 * python_rows.py does it, and says how long it took.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/bench/bench.h"

/* What the script knows by its name. */
struct python_side {
    const char *ours, *other;
};

static FILE *python_in, *python_out;
static pid_t python_pid;

static void python_start(void)
{
    int in[2], out[2];

    bench_must(!pipe(in) && !pipe(out), "pipe");
    python_pid = fork();
    bench_must(python_pid >= 0, "fork");
    if (!python_pid) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)close(in[1]);
        (void)close(out[0]);
        (void)setenv("PYTHONPATH", PYTHON_PACKAGE_FOLDER, 1);
        (void)execl(PYTHON_PROGRAM, PYTHON_PROGRAM, PYTHON_ROWS, NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    python_in = fdopen(in[1], "w");
    python_out = fdopen(out[0], "r");
    bench_must(python_in && python_out, "fdopen");
}

/* False: the script, or something that it needs, cannot be had here. */
static bool python_is_ready(char *answer, size_t size)
{
    return *PYTHON_PROGRAM && fgets(answer, (int)size, python_out) && answer[0] == '+';
}

static double python_do(const char *what)
{
    char answer[128];

    bench_must(fprintf(python_in, "%s\n", what) > 0 && !fflush(python_in), "writing to Python");
    bench_must(fgets(answer, sizeof(answer), python_out) != NULL, "Python's answer");
    return strtod(answer, NULL);
}

static double send_ours(void *context)
{
    return python_do(((const struct python_side *)context)->ours);
}

static double send_other(void *context)
{
    return python_do(((const struct python_side *)context)->other);
}

int main(int argc, char **argv)
{
    static const struct bench_row rows[] = {
        {.name = "python_64m_first_vs_shm", .unit = BENCH_US, .rival = true, .hold = 1.5},
        {.name = "python_64m_again_vs_shm", .unit = BENCH_US, .rival = true, .hold = 1.0},
        {.name = "python_64m_reopened_vs_shm", .unit = BENCH_US, .rival = true, .hold = 1.0},
        {.name = "python_64m_pool_vs_shm", .unit = BENCH_US, .rival = true, .hold = 1.0},
        {.name = "python_64m_dumps_vs_shm", .unit = BENCH_US, .rival = true},
        {.name = "python_64m_loads_vs_shm", .unit = BENCH_US, .rival = true},
        {.name = "python_64m_first_vs_pickle", .unit = BENCH_US, .rival = true, .hold = 0.001},
    };
    static struct python_side sides[] = {
        {"first", "shm"},       {"again", "shm"},       {"reopened", "shm"}, {"pool", "shm"},
        {"dumps", "dumps_shm"}, {"loads", "loads_shm"}, {"first", "pickle"},
    };
    const size_t n = sizeof(rows) / sizeof(*rows);
    char answer[128] = "";
    bool ready;

    bench_begin(argc, argv, rows, n);
    python_start();
    ready = python_is_ready(answer, sizeof(answer));
    for (size_t i = 0; i < n; i++) {
        const bool slow = i == n - 1;

        if (!ready)
            bench_skip(&rows[i], "no NumPy, or the Python package was not built");
        else
            (void)bench_run(&rows[i], &(struct bench){.ours = {.timed = send_ours},
                                                      .other = {.timed = send_other},
                                                      .context = &sides[i],
                                                      .rounds = slow ? 2 : 10,
                                                      .a_round = slow ? 1 : 5,
                                                      .wall_only = true});
    }
    (void)fclose(python_in);
    (void)fclose(python_out);
    while (waitpid(python_pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return bench_end();
}
