/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main of a fuzz target when there is no libFuzzer: every input of corpus/NAME, then mutations of each. The
 * generator starts from the same number every time, so that a failure comes again; the input that was running is
 * written to a file when the process dies of it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* fewer where each is slow */
#ifndef MUTATIONS
#define MUTATIONS 2000
#endif
#define INPUT_ROOM (256 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t input[INPUT_ROOM];
static size_t input_size;
static char crash_name[512];
static uint64_t state = 0x9e3779b97f4a7c15;

/* xorshift: repeatable on purpose */
static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void run(const uint8_t *data, size_t size)
{
    /* an exact allocation, so that ASan sees a read of one byte too many */
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    memcpy(copy, data, size);
    memcpy(input, data, size);
    input_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void on_death(int signal_number)
{
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    static const char text[] = "died; the input is in ";

    if (fd >= 0 && write(fd, input, input_size) == (ssize_t)input_size &&
        write(STDERR_FILENO, text, sizeof(text) - 1) > 0 && write(STDERR_FILENO, crash_name, strlen(crash_name)) > 0 &&
        write(STDERR_FILENO, "\n", 1) > 0)
        close(fd);
    raise(signal_number);
}

/* One to eight small changes: bits, bytes that are often special, lengths, cuts and repeats. */
static size_t mutate(uint8_t *data, size_t size, size_t room)
{
    static const uint8_t special[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x40, 0x10};

    for (unsigned int n = 1 + next() % 8; n > 0; n--) {
        size_t at = size ? next() % size : 0;

        switch (next() % 6) {
        case 0:
            if (size)
                data[at] ^= (uint8_t)(1u << next() % 8);
            break;
        case 1:
            if (size)
                data[at] = special[next() % sizeof(special)];
            break;
        case 2:
            if (size >= at + 4)
                memset(data + at, special[next() % sizeof(special)], 4);
            break;
        case 3:
            size = at;
            break;
        case 4:
            if (size && size < room) {
                memmove(data + at + 1, data + at, size - at);
                size++;
            }
            break;
        case 5:
            if (size - at > 1) {
                memmove(data + at, data + at + 1, size - at - 1);
                size--;
            }
            break;
        }
    }
    return size;
}

static void replay(const uint8_t *data, size_t size)
{
    static uint8_t mutant[INPUT_ROOM];

    run(data, size);
    for (unsigned int i = 0; i < MUTATIONS; i++) {
        memcpy(mutant, data, size);
        run(mutant, mutate(mutant, size, sizeof(mutant)));
    }
}

static bool replay_file(const char *path)
{
    static uint8_t data[INPUT_ROOM];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));

    if (fd >= 0)
        close(fd);
    if (n < 0) {
        perror(path);
        return false;
    }
    replay(data, (size_t)n);
    return true;
}

int main(int argc, char **argv)
{
    const char *srcdir = getenv("srcdir");
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    struct sigaction action = {.sa_handler = on_death, .sa_flags = SA_RESETHAND | SA_NODEFER};
    char folder[4096];
    unsigned int count = 0;
    struct dirent *entry;
    DIR *dir;

    snprintf(crash_name, sizeof(crash_name), "fuzz-crash-%.200s", name);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);

    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            if (!replay_file(argv[i]))
                return 1;
        return 0;
    }

    replay((const uint8_t *)"", 0);
    snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", srcdir ? srcdir : ".", name);
    dir = opendir(folder);
    while (dir && (entry = readdir(dir))) {
        char path[8192];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (!replay_file(path))
            return 1;
        count++;
    }
    if (dir)
        closedir(dir);
    printf("%s: %u inputs, %u mutations of each\n", name, count, (unsigned int)MUTATIONS);
    return 0;
}
