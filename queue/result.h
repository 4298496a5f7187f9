// SPDX-License-Identifier: MIT
// What a call that a program can get wrong returns: a value, or an errno with the sentence that explains it.
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <utility>

#include "queue/check.h"

namespace nicless::queue {

// errno_value: a positive errno. why: one sentence that says what happened and what to do, without a full stop and
// without the name of the call (the façade puts that before it).
struct Error {
  Error() = default;
  Error(int value, std::string sentence) : errno_value(value), why(std::move(sentence)) {}
  int errno_value = 0;
  std::string why;
  friend bool operator==(const Error&, const Error&) = default;
};

// Result<T> holds a T or an Error; Result<void> holds nothing or an Error. Asking for the value of an error is a bug
// of ours and aborts.
template <typename T>
using Result = boost::system::result<T, Error>;

inline Error error(int errno_value, std::string why) {
  return Error{errno_value, std::move(why)};
}

[[noreturn]] inline void throw_exception_from_error(const Error& e, const boost::source_location& where) {
  check_failed(e.why.c_str(), where.file_name(), static_cast<int>(where.line()));
}

}  // namespace nicless::queue
