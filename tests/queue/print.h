// SPDX-License-Identifier: MIT
// A failing CHECK shows these values in words. For tests of queue/.
#pragma once

#include <infiniband/verbs.h>

#include <catch2/catch.hpp>
#include <ostream>
#include <string>

#include "queue/result.h"
#include "queue/types.h"
#include "queue/work_request.h"

namespace nicless::queue {

template <typename Tag, typename Rep>
std::ostream& operator<<(std::ostream& out, StrongId<Tag, Rep> id) {
  return out << id.value();
}
inline std::ostream& operator<<(std::ostream& out, const Sge& sge) {
  return out << "{addr " << sge.addr << ", length " << sge.length << ", lkey " << sge.lkey << "}";
}
inline std::ostream& operator<<(std::ostream& out, const Error& e) {
  return out << "errno " << e.errno_value << ": " << e.why;
}

// What of a result a test compares: 0, or the errno.
template <typename T>
int errno_of(const Result<T>& result) {
  return result.has_error() ? result.error().errno_value : 0;
}

}  // namespace nicless::queue

template <typename T>
struct Catch::StringMaker<boost::system::result<T, nicless::queue::Error>> {
  static std::string convert(const boost::system::result<T, nicless::queue::Error>& result) {
    return result.has_error() ? Catch::Detail::stringify(result.error()) : "success";
  }
};
