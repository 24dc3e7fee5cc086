// Either a value or an Error: the return type of every fallible function of core.
//
// A value of its caller; one thread at a time. Reading the value of a failed Result, or the error of a
// successful one, is a programming error and terminates the process.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/error.h"

namespace dtrun {

// A union: std::variant, instantiated for each returned type, took a quarter of core's build time.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T result) : value_(std::move(result)), ok_(true) {}
  Result(Error failure) : error_(std::move(failure)), ok_(false) {}
  Result(const Result& other) requires std::is_copy_constructible_v<T> : ok_(other.ok_) {
    if (ok_) {
      std::construct_at(&value_, other.value_);
    } else {
      std::construct_at(&error_, other.error_);
    }
  }
  Result(Result&& other) noexcept : ok_(other.ok_) { TakeFrom(other); }
  Result& operator=(Result other) noexcept {
    Destroy();
    ok_ = other.ok_;
    TakeFrom(other);
    return *this;
  }
  ~Result() { Destroy(); }

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }

  T& value() & { return Check(), value_; }
  const T& value() const& { return Check(), value_; }
  T&& value() && { return Check(), std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok()
  const Error& error() const& { return CheckFailed(), error_; }
  Error&& error() && { return CheckFailed(), std::move(error_); }

 private:
  void Check() const {
    if (!ok_) std::abort();
  }
  void CheckFailed() const {
    if (ok_) std::abort();
  }
  void TakeFrom(Result& other) {
    if (ok_) {
      std::construct_at(&value_, std::move(other.value_));
    } else {
      std::construct_at(&error_, std::move(other.error_));
    }
  }
  void Destroy() {
    if (ok_) {
      value_.~T();
    } else {
      error_.~Error();
    }
  }

  union {
    T value_;
    Error error_;
  };
  bool ok_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept {}  // not defaulted: `return {}` would zero the whole error, on the path of every call
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok()
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace dtrun
