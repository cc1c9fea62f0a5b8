/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs here have in common: checks that end the program, and nbla::Memory over malloc(). */
#pragma once

#include <memclient/nbla_memory.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

#define check(condition) check_that((condition), #condition, __FILE__, __LINE__)

inline void check_that(bool so, const char *what, const char *file, int line)
{
    if (so)
        return;
    std::fprintf(stderr, "%s:%d: this is not so: %s\n", file, line, what);
    std::exit(1);
}

/* The name of the code with which it throws; "" if it does not. */
template <typename Call> std::string code_of(Call call)
{
    try {
        call();
    } catch (const nbla::Exception &problem) {
        const std::string what = problem.what();

        return what.substr(0, what.find(' '));
    }
    return "";
}
#define check_throws(code, call) check(code_of([&] { call; }) == #code)

class CpuMemory : public nbla::Memory
{
  public:
    CpuMemory(std::size_t bytes, const std::string &device_id) : nbla::Memory(bytes, device_id) {}
    CpuMemory(const CpuMemory &) = delete;
    CpuMemory &operator=(const CpuMemory &) = delete;
    ~CpuMemory() override
    {
        check(!ptr_ || !prev());
        std::free(ptr_);
    }

  protected:
    bool alloc_impl() override
    {
        ptr_ = std::calloc(1, bytes_);
        return ptr_;
    }
    nbla::shared_ptr<nbla::Memory> divide_impl(std::size_t second_start) override
    {
        auto second = std::make_shared<CpuMemory>(bytes_ - second_start, device_id());

        second->ptr_ = static_cast<char *>(ptr_) + second_start;
        return second;
    }
    void merge_next_impl(nbla::Memory *) override {}
    void merge_prev_impl(nbla::Memory *from) override { ptr_ = from->pointer(); }
};
