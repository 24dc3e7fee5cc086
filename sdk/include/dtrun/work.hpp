// work.hpp - what the calls of dtrun.hpp are made of: failures, element types, running work, extensions.
//
// Header-only, C++17; included by dtrun.hpp. Values; a Work is used by one thread at a time.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "dtrun/device.h"
#include "dtrun/failure.h"

namespace dtrun {

// Why a call failed. what() is the message; id() its name for programs; ranks() those that it is about, and
// peer() the one that went away, or -1.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const dtrun_error& error)
      : std::runtime_error(error.message),
        code_(error.code),
        peer_(error.peer),
        id_(dtrun_error_id(&error)),
        ranks_(static_cast<std::size_t>(dtrun_error_ranks(&error, nullptr, 0))) {
    dtrun_error_ranks(&error, ranks_.data(), static_cast<std::int32_t>(ranks_.size()));
  }
  dtrun_status code() const noexcept { return code_; }
  int peer() const noexcept { return peer_; }
  const char* id() const noexcept { return id_; }
  const std::vector<std::int32_t>& ranks() const noexcept { return ranks_; }

 private:
  dtrun_status code_;
  int peer_;
  const char* id_;
  std::vector<std::int32_t> ranks_;
};

enum class Reduce : std::int32_t {
  sum = DTRUN_SUM,
  prod = DTRUN_PROD,
  min = DTRUN_MIN,
  max = DTRUN_MAX,
  avg = DTRUN_AVG,
  band = DTRUN_BAND,
  bor = DTRUN_BOR,
  bxor = DTRUN_BXOR,
  land = DTRUN_LAND,
  lor = DTRUN_LOR
};

// The dtrun element type of T; a compile error for types that have none. The 16-bit
// floats have no C++ type: use the calls that take a dtype.
template <class T>
constexpr std::int32_t dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return DTRUN_FLOAT32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DTRUN_FLOAT64;
  } else if constexpr (std::is_same_v<U, std::complex<float>>) {
    return DTRUN_COMPLEX64;
  } else if constexpr (std::is_same_v<U, std::complex<double>>) {
    return DTRUN_COMPLEX128;
  } else if constexpr (std::is_same_v<U, bool>) {
    return DTRUN_BOOL;
  } else {
    static_assert(std::is_integral_v<U> && sizeof(U) <= 8, "dtrun has no element type for this C++ type");
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? DTRUN_INT8 : DTRUN_UINT8;
    if constexpr (sizeof(U) == 2) return is_signed ? DTRUN_INT16 : DTRUN_UINT16;
    if constexpr (sizeof(U) == 4) return is_signed ? DTRUN_INT32 : DTRUN_UINT32;
    return is_signed ? DTRUN_INT64 : DTRUN_UINT64;
  }
}

namespace detail {
// Runs `call(&error)` and throws what it reports.
template <class Call>
void check(Call&& call) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  if (call(&error) != DTRUN_OK) throw Failure(error);
}
struct ReleaseWork {
  void operator()(dtrun_work* work) const noexcept { dtrun_work_release(work); }
};
}  // namespace detail

// An operation under way. The destructor waits for its end, so buffers may be freed after it; not where
// wait_on has ordered a stream after it.
class Work {
 public:
  Work() = default;
  explicit Work(dtrun_work* work) : work_(work) {}

  // True when finished. Throws the operation's failure.
  bool test() {
    std::int32_t done = 0;
    detail::check([&](dtrun_error* e) { return dtrun_work_test(work_.get(), &done, e); });
    return done != 0;
  }
  // Blocks until finished, at most `timeout_ns`: false when it still runs then, and can be waited for again.
  // -1: the operation's own timeout only. Throws the operation's failure.
  bool wait(std::int64_t timeout_ns = -1) {
    bool finished = true;
    detail::check([&](dtrun_error* e) {
      const dtrun_status status = dtrun_work_wait(work_.get(), timeout_ns, e);
      finished = status != DTRUN_PENDING;
      return finished ? status : dtrun_status{DTRUN_OK};
    });
    return finished;
  }
  // Later work on `stream` starts after the operation, or all of a group. Does not block, but for staging,
  // and says nothing of its success; the destructor waits no more.
  void wait_on(const dtrun_stream& stream) {
    detail::check([&](dtrun_error* e) { return dtrun_work_wait_on(work_.get(), &stream, e); });
  }
  explicit operator bool() const { return work_ != nullptr; }

 private:
  std::unique_ptr<dtrun_work, detail::ReleaseWork> work_;
};

// What a backend offers beyond dtrun.h: Table is the struct of its author's header.
template <class Table>
struct Extension {
  const Table* table;
  dtrun_backend_comm* comm;  // first argument of its members; null: this rank has none
  const char* backend;
};

}  // namespace dtrun
