/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs here have in common: checks that end the program, and another process. */
#pragma once

#include <memclient/memclient.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#define check(condition) check_that((condition), #condition, __FILE__, __LINE__)

inline void check_that(bool so, const char *what, const char *file, int line)
{
    if (so)
        return;
    std::fprintf(stderr, "%s:%d: this is not so: %s (%s)\n", file, line, what, memclient::sentence());
    std::_Exit(1);
}

/* A child, and a pipe each way. It begins before this process has a session. */
class Process
{
  public:
    template <class Play> explicit Process(Play play)
    {
        int to[2], from[2];

        check(!pipe(to) && !pipe(from));
        pid_ = fork();
        check(pid_ >= 0);
        in_ = pid_ ? from[0] : to[0];
        out_ = pid_ ? to[1] : from[1];
        close(pid_ ? to[0] : from[0]);
        close(pid_ ? from[1] : to[1]);
        if (pid_)
            return;
        play(*this);
        std::_Exit(0);
    }
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;
    ~Process()
    {
        int status;

        close(out_);
        check(waitpid(pid_, &status, 0) == pid_ && !status);
        close(in_);
    }

    template <class T> void send(const T &value) { check(write(out_, &value, sizeof(value)) == sizeof(value)); }
    template <class T> T receive()
    {
        T value;

        check(read(in_, static_cast<void *>(&value), sizeof(value)) == sizeof(value));
        return value;
    }

  private:
    pid_t pid_;
    int in_, out_;
};
