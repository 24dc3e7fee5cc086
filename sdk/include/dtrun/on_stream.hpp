// on_stream.hpp - streams, and the operations of a Communicator on memory of a device in the order of one.
//
// Header-only, C++17; included by dtrun.hpp. What Communicator::on returns: a value, valid as long as the
// communicator and the stream are. Any thread, as dtrun_submit_on.
//
// An operation starts after what is queued on the stream, and no call waits for it. With the plain forms
// later work on the stream sees the result. With the _async forms it may start before: Work::wait_on orders a
// stream, this one or another, after the end, and until then the buffers belong to the operation. That an
// operation has failed is known from Work::test, Work::wait and later calls on the communicator.
#pragma once

#include <cstdint>
#include <utility>

#include "dtrun/work.hpp"

namespace dtrun {

class Communicator;

class OnStream {
 public:
  OnStream(dtrun_comm* comm, const dtrun_stream& stream) : comm_(comm), stream_(stream) {}

  // ---- operations of all ranks; in place where there is one pointer

  template <class T>
  void allreduce(T* data, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    run(reducing(DTRUN_ALLREDUCE, data, data, count, dtype_of<T>(), reduce));
  }
  template <class T>
  [[nodiscard]] Work allreduce_async(T* data, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    return start(reducing(DTRUN_ALLREDUCE, data, data, count, dtype_of<T>(), reduce));
  }
  // For element types that C++ lacks.
  void allreduce(void* data, std::uint64_t count, std::int32_t dtype, Reduce reduce) const {
    run(reducing(DTRUN_ALLREDUCE, data, data, count, dtype, reduce));
  }
  [[nodiscard]] Work allreduce_async(void* data, std::uint64_t count, std::int32_t dtype,
                                     Reduce reduce) const {
    return start(reducing(DTRUN_ALLREDUCE, data, data, count, dtype, reduce));
  }

  template <class T>
  void reduce(const T* send, T* recv, std::uint64_t count, int root, Reduce how = Reduce::sum) const {
    run(rooted(reducing(DTRUN_REDUCE, send, recv, count, dtype_of<T>(), how), root));
  }
  template <class T>
  [[nodiscard]] Work reduce_async(const T* send, T* recv, std::uint64_t count, int root,
                                  Reduce how = Reduce::sum) const {
    return start(rooted(reducing(DTRUN_REDUCE, send, recv, count, dtype_of<T>(), how), root));
  }

  template <class T>
  void broadcast(T* data, std::uint64_t count, int root) const {
    run(rooted(moving(DTRUN_BROADCAST, nullptr, data, count, dtype_of<T>()), root));
  }
  template <class T>
  [[nodiscard]] Work broadcast_async(T* data, std::uint64_t count, int root) const {
    return start(rooted(moving(DTRUN_BROADCAST, nullptr, data, count, dtype_of<T>()), root));
  }

  // Later work on the stream starts when every rank's stream has reached it.
  void barrier() const { run(moving(DTRUN_BARRIER, nullptr, nullptr, 0, 0)); }

  // `recv` has size() * count elements.
  template <class T>
  void allgather(const T* send, T* recv, std::uint64_t count) const {
    run(moving(DTRUN_ALLGATHER, send, recv, count, dtype_of<T>()));
  }
  template <class T>
  [[nodiscard]] Work allgather_async(const T* send, T* recv, std::uint64_t count) const {
    return start(moving(DTRUN_ALLGATHER, send, recv, count, dtype_of<T>()));
  }

  // `send` has size() * count elements.
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    run(reducing(DTRUN_REDUCE_SCATTER, send, recv, count, dtype_of<T>(), reduce));
  }
  template <class T>
  [[nodiscard]] Work reduce_scatter_async(const T* send, T* recv, std::uint64_t count,
                                          Reduce reduce = Reduce::sum) const {
    return start(reducing(DTRUN_REDUCE_SCATTER, send, recv, count, dtype_of<T>(), reduce));
  }

  // Both have size() * count elements.
  template <class T>
  void alltoall(const T* send, T* recv, std::uint64_t count) const {
    run(moving(DTRUN_ALLTOALL, send, recv, count, dtype_of<T>()));
  }
  template <class T>
  [[nodiscard]] Work alltoall_async(const T* send, T* recv, std::uint64_t count) const {
    return start(moving(DTRUN_ALLTOALL, send, recv, count, dtype_of<T>()));
  }

  // ---- operations of two ranks

  template <class T>
  void send(const T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    run(paired(moving(DTRUN_SEND, data, nullptr, count, dtype_of<T>()), peer, tag));
  }
  template <class T>
  [[nodiscard]] Work send_async(const T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    return start(paired(moving(DTRUN_SEND, data, nullptr, count, dtype_of<T>()), peer, tag));
  }
  template <class T>
  void recv(T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    run(paired(moving(DTRUN_RECV, nullptr, data, count, dtype_of<T>()), peer, tag));
  }
  template <class T>
  [[nodiscard]] Work recv_async(T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    return start(paired(moving(DTRUN_RECV, nullptr, data, count, dtype_of<T>()), peer, tag));
  }

  // ---- any other operation, as dtrun/abi/op.h describes it

  void submit(const dtrun_op& op) const { run(op); }
  [[nodiscard]] Work submit_async(const dtrun_op& op) const { return start(op); }

 private:
  static dtrun_op moving(std::int32_t kind, const void* send, void* recv, std::uint64_t count,
                         std::int32_t dtype) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = dtype;
    op.root = -1;
    op.peer = -1;
    op.count = count;
    op.send = send;
    op.recv = recv;
    return op;
  }
  static dtrun_op reducing(std::int32_t kind, const void* send, void* recv, std::uint64_t count,
                           std::int32_t dtype, Reduce reduce) {
    dtrun_op op = moving(kind, send, recv, count, dtype);
    op.reduce = static_cast<std::int32_t>(reduce);
    return op;
  }
  static dtrun_op rooted(dtrun_op op, int root) {
    op.root = root;
    return op;
  }
  static dtrun_op paired(dtrun_op op, int peer, std::uint32_t tag) {
    op.peer = peer;
    op.tag = tag;
    return op;
  }
  void run(const dtrun_op& op) const {
    detail::check([&](dtrun_error* e) { return dtrun_submit_on(comm_, &op, &stream_, nullptr, e); });
  }
  Work start(const dtrun_op& op) const {
    dtrun_work* work = nullptr;
    detail::check([&](dtrun_error* e) { return dtrun_submit_on(comm_, &op, &stream_, &work, e); });
    return Work(work);
  }

  dtrun_comm* comm_;
  dtrun_stream stream_;
};

// A stream that the device's own library has made.
inline dtrun_stream stream_of(int device_kind, int device_index, void* native) {
  dtrun_stream stream;
  DTRUN_INIT(stream);
  stream.device_kind = device_kind;
  stream.device_index = device_index;
  stream.native = native;
  return stream;
}

// A stream of a device that the ranks are connected to, for those who have no library of it at hand. Ends
// before its communicator, when its work has ended.
class Stream {
 public:
  // priority: 1: its work goes before that of others.
  Stream(const Communicator& comm, int device_kind, int device_index, int priority = 0);
  ~Stream() {
    if (comm_ != nullptr) dtrun_stream_destroy(comm_, &stream_);
  }
  Stream(Stream&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)), stream_(other.stream_) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(stream_, other.stream_);
    return *this;
  }

  const dtrun_stream& get() const { return stream_; }
  operator const dtrun_stream&() const { return stream_; }  // NOLINT: a Stream is one

 private:
  dtrun_comm* comm_;
  dtrun_stream stream_;
};

}  // namespace dtrun
