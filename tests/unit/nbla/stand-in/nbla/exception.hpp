/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for nnabla's header of this name: its error codes, in its order, and its exception. */
#pragma once

#include <exception>
#include <string>

namespace nbla
{

enum class error_code {
    unclassified,
    not_implemented,
    value,
    type,
    memory,
    io,
    os,
    target_specific,
    target_specific_async,
    runtime
};

class Exception : public std::exception
{
  public:
    /* what() begins with the code's name; there is no other way to ask for it */
    Exception(error_code code, const std::string &message, const std::string &function, const std::string &file,
              int line)
    {
        static const char *const names[] = {
            "unclassified",    "not_implemented",       "value",  "type", "memory", "io", "os",
            "target_specific", "target_specific_async", "runtime"};

        text_ = names[static_cast<int>(code)];
        text_ += " error in " + function + "\n" + file + ":" + std::to_string(line) + "\n" + message + "\n";
    }
    const char *what() const noexcept override { return text_.c_str(); }

  private:
    std::string text_;
};

} // namespace nbla
