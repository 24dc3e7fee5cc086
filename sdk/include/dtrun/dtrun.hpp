// dtrun.hpp - the C++ face of dtrun.h: RAII, typed buffers, exceptions.
//
// Header-only, C++17. Every rule of dtrun.h holds. A failed call throws dtrun::Failure.
//
//   dtrun::Session session;                     // init ... finalize
//   dtrun::Communicator world = session.world();
//   world.allreduce(gradient.data(), gradient.size(), dtrun::Reduce::avg);
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "dtrun/dtrun.h"

namespace dtrun {

// Why a call failed. what() is the message; peer() the rank that went away, or -1.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const dtrun_error& error)
      : std::runtime_error(error.message), code_(error.code), peer_(error.peer) {}
  dtrun_status code() const noexcept { return code_; }
  int peer() const noexcept { return peer_; }

 private:
  dtrun_status code_;
  int peer_;
};

enum class Reduce : std::int32_t {
  sum = DTRUN_SUM,
  prod = DTRUN_PROD,
  min = DTRUN_MIN,
  max = DTRUN_MAX,
  avg = DTRUN_AVG
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
  } else if constexpr (std::is_same_v<U, std::int32_t>) {
    return DTRUN_INT32;
  } else if constexpr (std::is_same_v<U, std::int64_t>) {
    return DTRUN_INT64;
  } else {
    static_assert(std::is_same_v<U, std::uint8_t>, "dtrun has no element type for this C++ type");
    return DTRUN_UINT8;
  }
}

namespace detail {
// Runs `call(&error)` and throws what it reports.
template <class Call>
void check(Call&& call) {
  dtrun_error error;
  DTRUN_INIT(error);
  if (call(&error) != DTRUN_OK) throw Failure(error);
}
struct ReleaseWork {
  void operator()(dtrun_work* work) const noexcept { dtrun_work_release(work); }
};
}  // namespace detail

// An operation under way. Destroying it waits for its end, so buffers may follow.
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
  // Blocks until finished. `timeout_ns` -1: the operation's own timeout only.
  void wait(std::int64_t timeout_ns = -1) {
    detail::check([&](dtrun_error* e) { return dtrun_work_wait(work_.get(), timeout_ns, e); });
  }
  explicit operator bool() const { return work_ != nullptr; }

 private:
  std::unique_ptr<dtrun_work, detail::ReleaseWork> work_;
};

// A group of ranks. A cheap handle, valid until the Session ends; any thread.
// Blocking forms are plain names, the others end in _async and take the same arguments.
class Communicator {
 public:
  explicit Communicator(dtrun_comm* comm) : comm_(comm) {}

  int rank() const { return dtrun_comm_rank(comm_); }
  int size() const { return dtrun_comm_size(comm_); }
  std::string backend() const { return dtrun_comm_backend(comm_); }
  dtrun_comm* get() const { return comm_; }

  template <class T>
  void allreduce(T* data, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    block([&](dtrun_work** w, dtrun_error* e) { return allreduce_(data, count, reduce, w, e); });
  }
  template <class T>
  [[nodiscard]] Work allreduce_async(T* data, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    return start([&](dtrun_work** w, dtrun_error* e) { return allreduce_(data, count, reduce, w, e); });
  }
  // For element types that C++ lacks.
  [[nodiscard]] Work allreduce_async(void* data, std::uint64_t count, std::int32_t dtype,
                                     Reduce reduce) const {
    return start([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_allreduce(comm_, data, data, count, dtype, static_cast<std::int32_t>(reduce), w, e);
    });
  }

  template <class T>
  void broadcast(T* data, std::uint64_t count, int root) const {
    block([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_broadcast(comm_, data, count, dtype_of<T>(), root, w, e);
    });
  }
  template <class T>
  [[nodiscard]] Work broadcast_async(T* data, std::uint64_t count, int root) const {
    return start([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_broadcast(comm_, data, count, dtype_of<T>(), root, w, e);
    });
  }

  // `recv` has size() * count elements.
  template <class T>
  void allgather(const T* send, T* recv, std::uint64_t count) const {
    block([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_allgather(comm_, send, recv, count, dtype_of<T>(), w, e);
    });
  }
  template <class T>
  [[nodiscard]] Work allgather_async(const T* send, T* recv, std::uint64_t count) const {
    return start([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_allgather(comm_, send, recv, count, dtype_of<T>(), w, e);
    });
  }

  // `send` has size() * count elements.
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    block([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_reduce_scatter(comm_, send, recv, count, dtype_of<T>(), static_cast<std::int32_t>(reduce),
                                  w, e);
    });
  }
  template <class T>
  [[nodiscard]] Work reduce_scatter_async(const T* send, T* recv, std::uint64_t count,
                                          Reduce reduce = Reduce::sum) const {
    return start([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_reduce_scatter(comm_, send, recv, count, dtype_of<T>(), static_cast<std::int32_t>(reduce),
                                  w, e);
    });
  }

  void barrier() const {
    block([&](dtrun_work** w, dtrun_error* e) { return dtrun_barrier(comm_, w, e); });
  }

  template <class T>
  void send(const T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    block([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_send(comm_, data, count, dtype_of<T>(), peer, tag, w, e);
    });
  }
  template <class T>
  [[nodiscard]] Work send_async(const T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    return start([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_send(comm_, data, count, dtype_of<T>(), peer, tag, w, e);
    });
  }
  template <class T>
  void recv(T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    block([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_recv(comm_, data, count, dtype_of<T>(), peer, tag, w, e);
    });
  }
  template <class T>
  [[nodiscard]] Work recv_async(T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    return start([&](dtrun_work** w, dtrun_error* e) {
      return dtrun_recv(comm_, data, count, dtype_of<T>(), peer, tag, w, e);
    });
  }

  void abort(const std::string& reason) const {
    detail::check([&](dtrun_error* e) { return dtrun_comm_abort(comm_, reason.c_str(), e); });
  }

 private:
  template <class T>
  dtrun_status allreduce_(T* data, std::uint64_t count, Reduce reduce, dtrun_work** w, dtrun_error* e) const {
    return dtrun_allreduce(comm_, data, data, count, dtype_of<T>(), static_cast<std::int32_t>(reduce), w, e);
  }
  template <class Call>
  static void block(Call&& call) {
    detail::check([&](dtrun_error* e) { return call(nullptr, e); });
  }
  template <class Call>
  static Work start(Call&& call) {
    dtrun_work* work = nullptr;
    detail::check([&](dtrun_error* e) { return call(&work, e); });
    return Work(work);
  }

  dtrun_comm* comm_;
};

// Membership in the job: dtrun_init ... dtrun_finalize.
class Session {
 public:
  Session() {
    detail::check([](dtrun_error* e) { return dtrun_init(e); });
  }
  ~Session() { dtrun_finalize(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Communicator world() const { return Communicator(dtrun_world()); }
};

}  // namespace dtrun
