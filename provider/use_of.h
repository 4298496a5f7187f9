// SPDX-License-Identifier: MIT
// An object's use of another one (a queue pair's of its CQs), which cannot be destroyed meanwhile: it counts in that
// one's `users`. Thread-safe.
#pragma once

namespace nicless::provider {

template <typename Object>
class UseOf {
 public:
  explicit UseOf(Object* object) : object_(object) {
    if (object_ != nullptr) object_->users.fetch_add(1);
  }
  ~UseOf() {
    if (object_ != nullptr) object_->users.fetch_sub(1);
  }
  UseOf(const UseOf&) = delete;
  UseOf& operator=(const UseOf&) = delete;
  Object* operator->() const { return object_; }
  Object* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Object* object_;
};

}  // namespace nicless::provider
