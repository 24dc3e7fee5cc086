// Either a value or an Error: what every fallible function of core returns.
//
// Reading the value of a failed Result is a programming error and ends the process.
#pragma once

#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/error.h"

namespace dtrun {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T result) : state_(std::in_place_index<0>, std::move(result)) {}
  Result(Error failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return Check(), std::get<0>(state_); }
  const T& value() const& { return Check(), std::get<0>(state_); }
  T&& value() && { return Check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok()
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  void Check() const {
    if (!ok()) std::abort();
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
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
