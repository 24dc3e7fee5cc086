// dtrun.hpp - dtrun.h for C++: RAII, typed buffers, exceptions.
//
// Header-only, C++17. All rules of dtrun.h apply, including those about threads. A failed call throws
// dtrun::Failure.
// Each object owns its handle and releases it.
//
//   dtrun::Session session;                     // init ... finalize
//   dtrun::Communicator world = session.world();
//   world.allreduce(gradient.data(), gradient.size(), dtrun::Reduce::avg);
//
// On memory of a device, in the order of a stream of its library:
//
//   const dtrun_stream stream = dtrun::stream_of(DTRUN_DEVICE_CUDA, device, cuda_stream);
//   world.on(stream).allreduce(gradient, count, dtrun::Reduce::avg);  // returns at once
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "dtrun/on_stream.hpp"
#include "dtrun/work.hpp"

namespace dtrun {

// The newest value of `name`, for the run folder and metrics.listen, as dtrun_metric. step < 0: none.
inline void metric(const std::string& name, double value, std::int64_t step = -1) {
  detail::check([&](dtrun_error* e) { return dtrun_metric(name.c_str(), value, step, e); });
}

// A set of ranks. A cheap handle, valid until its owner ends: the Session for the world, a
// SubCommunicator for others. Any thread. Blocking forms have plain names; the others end in
// _async and take the same arguments. Pointers and counts are those of dtrun.h.
class Communicator {
 public:
  explicit Communicator(dtrun_comm* comm) : comm_(comm) {}

  int rank() const { return dtrun_comm_rank(comm_); }
  int size() const { return dtrun_comm_size(comm_); }
  std::string name() const { return dtrun_comm_name(comm_); }
  std::string backend() const { return dtrun_comm_backend(comm_); }
  dtrun_comm* get() const { return comm_; }

  void abort(const std::string& reason) const {
    detail::check([&](dtrun_error* e) { return dtrun_comm_abort(comm_, reason.c_str(), e); });
  }

  // Throws where no backend that carries it offers `id`, "<vendor>.<name>/<revision>".
  template <class Table>
  Extension<Table> extension(const char* id) const {
    dtrun_extension found;
    DTRUN_INIT(found);
    detail::check([&](dtrun_error* e) { return dtrun_comm_extension(comm_, id, &found, e); });
    return {static_cast<const Table*>(found.table), found.comm, found.backend};
  }

  // ---- operations of all ranks; in place where there is one pointer

  template <class T>
  void allreduce(T* data, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    run(dtrun_allreduce, data, data, count, dtype_of<T>(), number(reduce));
  }
  template <class T>
  [[nodiscard]] Work allreduce_async(T* data, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    return start(dtrun_allreduce, data, data, count, dtype_of<T>(), number(reduce));
  }
  // For element types that C++ lacks.
  [[nodiscard]] Work allreduce_async(void* data, std::uint64_t count, std::int32_t dtype,
                                     Reduce reduce) const {
    return start(dtrun_allreduce, data, data, count, dtype, number(reduce));
  }
  // The sum of every rank's data times its scale.
  template <class T>
  void allreduce_premul(T* data, std::uint64_t count, double scale) const {
    run(dtrun_allreduce_premul, data, data, count, dtype_of<T>(), scale);
  }
  template <class T>
  [[nodiscard]] Work allreduce_premul_async(T* data, std::uint64_t count, double scale) const {
    return start(dtrun_allreduce_premul, data, data, count, dtype_of<T>(), scale);
  }

  template <class T>
  void reduce(const T* send, T* recv, std::uint64_t count, int root, Reduce how = Reduce::sum) const {
    run(dtrun_reduce, send, recv, count, dtype_of<T>(), number(how), root);
  }
  template <class T>
  [[nodiscard]] Work reduce_async(const T* send, T* recv, std::uint64_t count, int root,
                                  Reduce how = Reduce::sum) const {
    return start(dtrun_reduce, send, recv, count, dtype_of<T>(), number(how), root);
  }

  template <class T>
  void broadcast(T* data, std::uint64_t count, int root) const {
    run(dtrun_broadcast, data, count, dtype_of<T>(), root);
  }
  template <class T>
  [[nodiscard]] Work broadcast_async(T* data, std::uint64_t count, int root) const {
    return start(dtrun_broadcast, data, count, dtype_of<T>(), root);
  }

  void barrier() const { run(dtrun_barrier); }
  [[nodiscard]] Work barrier_async() const { return start(dtrun_barrier); }

  // `recv` has size() * count elements.
  template <class T>
  void allgather(const T* send, T* recv, std::uint64_t count) const {
    run(dtrun_allgather, send, recv, count, dtype_of<T>());
  }
  template <class T>
  [[nodiscard]] Work allgather_async(const T* send, T* recv, std::uint64_t count) const {
    return start(dtrun_allgather, send, recv, count, dtype_of<T>());
  }
  template <class T>
  void allgatherv(const T* send, T* recv, const std::uint64_t* counts,
                  const std::uint64_t* offsets = nullptr) const {
    run(dtrun_allgatherv, send, recv, counts, offsets, dtype_of<T>());
  }
  template <class T>
  [[nodiscard]] Work allgatherv_async(const T* send, T* recv, const std::uint64_t* counts,
                                      const std::uint64_t* offsets = nullptr) const {
    return start(dtrun_allgatherv, send, recv, counts, offsets, dtype_of<T>());
  }

  // `send` has size() * count elements.
  template <class T>
  void reduce_scatter(const T* send, T* recv, std::uint64_t count, Reduce reduce = Reduce::sum) const {
    run(dtrun_reduce_scatter, send, recv, count, dtype_of<T>(), number(reduce));
  }
  template <class T>
  [[nodiscard]] Work reduce_scatter_async(const T* send, T* recv, std::uint64_t count,
                                          Reduce reduce = Reduce::sum) const {
    return start(dtrun_reduce_scatter, send, recv, count, dtype_of<T>(), number(reduce));
  }
  template <class T>
  void reduce_scatterv(const T* send, T* recv, const std::uint64_t* counts,
                       Reduce reduce = Reduce::sum) const {
    run(dtrun_reduce_scatterv, send, recv, counts, dtype_of<T>(), number(reduce));
  }
  template <class T>
  [[nodiscard]] Work reduce_scatterv_async(const T* send, T* recv, const std::uint64_t* counts,
                                           Reduce reduce = Reduce::sum) const {
    return start(dtrun_reduce_scatterv, send, recv, counts, dtype_of<T>(), number(reduce));
  }

  // Both have size() * count elements.
  template <class T>
  void alltoall(const T* send, T* recv, std::uint64_t count) const {
    run(dtrun_alltoall, send, recv, count, dtype_of<T>());
  }
  template <class T>
  [[nodiscard]] Work alltoall_async(const T* send, T* recv, std::uint64_t count) const {
    return start(dtrun_alltoall, send, recv, count, dtype_of<T>());
  }
  template <class T>
  void alltoallv(const T* send, const std::uint64_t* send_counts, const std::uint64_t* send_offsets, T* recv,
                 const std::uint64_t* recv_counts, const std::uint64_t* recv_offsets) const {
    run(dtrun_alltoallv, send, send_counts, send_offsets, recv, recv_counts, recv_offsets, dtype_of<T>());
  }
  template <class T>
  [[nodiscard]] Work alltoallv_async(const T* send, const std::uint64_t* send_counts,
                                     const std::uint64_t* send_offsets, T* recv,
                                     const std::uint64_t* recv_counts,
                                     const std::uint64_t* recv_offsets) const {
    return start(dtrun_alltoallv, send, send_counts, send_offsets, recv, recv_counts, recv_offsets,
                 dtype_of<T>());
  }

  // `recv` has size() * count elements on the root.
  template <class T>
  void gather(const T* send, T* recv, std::uint64_t count, int root) const {
    run(dtrun_gather, send, recv, count, dtype_of<T>(), root);
  }
  template <class T>
  [[nodiscard]] Work gather_async(const T* send, T* recv, std::uint64_t count, int root) const {
    return start(dtrun_gather, send, recv, count, dtype_of<T>(), root);
  }
  template <class T>
  void gatherv(const T* send, std::uint64_t count, T* recv, const std::uint64_t* counts,
               const std::uint64_t* offsets, int root) const {
    run(dtrun_gatherv, send, count, recv, counts, offsets, dtype_of<T>(), root);
  }
  template <class T>
  [[nodiscard]] Work gatherv_async(const T* send, std::uint64_t count, T* recv, const std::uint64_t* counts,
                                   const std::uint64_t* offsets, int root) const {
    return start(dtrun_gatherv, send, count, recv, counts, offsets, dtype_of<T>(), root);
  }

  // `send` has size() * count elements on the root.
  template <class T>
  void scatter(const T* send, T* recv, std::uint64_t count, int root) const {
    run(dtrun_scatter, send, recv, count, dtype_of<T>(), root);
  }
  template <class T>
  [[nodiscard]] Work scatter_async(const T* send, T* recv, std::uint64_t count, int root) const {
    return start(dtrun_scatter, send, recv, count, dtype_of<T>(), root);
  }
  template <class T>
  void scatterv(const T* send, const std::uint64_t* counts, const std::uint64_t* offsets, T* recv,
                std::uint64_t count, int root) const {
    run(dtrun_scatterv, send, counts, offsets, recv, count, dtype_of<T>(), root);
  }
  template <class T>
  [[nodiscard]] Work scatterv_async(const T* send, const std::uint64_t* counts, const std::uint64_t* offsets,
                                    T* recv, std::uint64_t count, int root) const {
    return start(dtrun_scatterv, send, counts, offsets, recv, count, dtype_of<T>(), root);
  }

  // ---- operations of two ranks

  template <class T>
  void send(const T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    run(dtrun_send, data, count, dtype_of<T>(), peer, tag);
  }
  template <class T>
  [[nodiscard]] Work send_async(const T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    return start(dtrun_send, data, count, dtype_of<T>(), peer, tag);
  }
  template <class T>
  void recv(T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    run(dtrun_recv, data, count, dtype_of<T>(), peer, tag);
  }
  template <class T>
  [[nodiscard]] Work recv_async(T* data, std::uint64_t count, int peer, std::uint32_t tag = 0) const {
    return start(dtrun_recv, data, count, dtype_of<T>(), peer, tag);
  }
  // From any rank that sends with this tag; *source becomes its rank when the operation ends.
  template <class T>
  void recv_any(T* data, std::uint64_t count, std::uint32_t tag, std::int32_t* source) const {
    run(dtrun_recv_any, data, count, dtype_of<T>(), tag, source);
  }
  template <class T>
  [[nodiscard]] Work recv_any_async(T* data, std::uint64_t count, std::uint32_t tag,
                                    std::int32_t* source) const {
    return start(dtrun_recv_any, data, count, dtype_of<T>(), tag, source);
  }

  // ---- memory of a device

  // Its operations work on buffers of the stream's device: on_stream.hpp. The first one connects the ranks,
  // and blocks, unless connect came before.
  OnStream on(const dtrun_stream& stream) const { return OnStream(comm_, stream); }
  // Called by every rank: operations on this kind of device use device `index` of this process.
  void connect(int device_kind, int index) const {
    detail::check([&](dtrun_error* e) { return dtrun_comm_connect(comm_, device_kind, index, e); });
  }
  // What carries them: "nccl", "staging over gloo", ... Throws where nothing does, with the reason.
  std::string route(int device_kind) const {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const std::string name = dtrun_comm_route(comm_, device_kind, &error);
    if (name.empty()) throw Failure(error);
    return name;
  }

  // ---- any operation

  void submit(const dtrun_op& op) const { run(dtrun_submit, &op); }
  [[nodiscard]] Work submit_async(const dtrun_op& op) const { return start(dtrun_submit, &op); }

 private:
  static std::int32_t number(Reduce reduce) { return static_cast<std::int32_t>(reduce); }
  template <class Function, class... Arguments>
  void run(Function* function, Arguments... arguments) const {
    detail::check([&](dtrun_error* e) { return function(comm_, arguments..., nullptr, e); });
  }
  template <class Function, class... Arguments>
  Work start(Function* function, Arguments... arguments) const {
    dtrun_work* work = nullptr;
    detail::check([&](dtrun_error* e) { return function(comm_, arguments..., &work, e); });
    return Work(work);
  }

  dtrun_comm* comm_;
};

// A communicator made from another, ended by its destructor. Empty on a rank that takes no
// part. End it before the Session.
class SubCommunicator {
 public:
  // Called by every rank of `parent`; a negative color takes part and gets an empty one.
  static SubCommunicator split(Communicator parent, int color, int key = 0) {
    dtrun_comm* made = nullptr;
    detail::check([&](dtrun_error* e) { return dtrun_comm_split(parent.get(), color, key, &made, e); });
    return SubCommunicator(made);
  }
  // Called by the members only: ranks[i] of `parent` becomes rank i.
  static SubCommunicator subset(Communicator parent, const std::vector<std::int32_t>& ranks) {
    dtrun_comm* made = nullptr;
    detail::check([&](dtrun_error* e) {
      return dtrun_comm_subset(parent.get(), ranks.data(), static_cast<std::int32_t>(ranks.size()), &made, e);
    });
    return SubCommunicator(made);
  }

  explicit operator bool() const { return comm_ != nullptr; }
  Communicator get() const { return Communicator(comm_.get()); }
  Communicator operator*() const { return get(); }

 private:
  explicit SubCommunicator(dtrun_comm* comm) : comm_(comm) {}
  struct Free {
    void operator()(dtrun_comm* comm) const noexcept { dtrun_comm_free(comm); }
  };
  std::unique_ptr<dtrun_comm, Free> comm_;
};

// Zeroed elements in memory that the transport moves fastest. Ends before its communicator.
template <class T>
class Memory {
 public:
  Memory(Communicator comm, std::size_t count) : memory_(nullptr, Free{comm.get()}), count_(count) {
    make([&](std::uint64_t bytes, void** out, dtrun_error* e) {
      return dtrun_alloc(comm.get(), bytes, out, e);
    });
  }
  // Of a device that the ranks are connected to; only its work may read and write it. Not zeroed.
  Memory(Communicator comm, std::size_t count, int device_kind, int device_index)
      : memory_(nullptr, Free{comm.get()}), count_(count) {
    make([&](std::uint64_t bytes, void** out, dtrun_error* e) {
      return dtrun_alloc_on(comm.get(), bytes, device_kind, device_index, out, e);
    });
  }
  T* data() const { return memory_.get(); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return memory_.get()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }

 private:
  template <class Allocate>
  void make(const Allocate& allocate) {
    static_assert(std::is_trivially_copyable_v<T>, "elements are bytes to the transport");
    if (count_ > SIZE_MAX / sizeof(T)) throw std::length_error("dtrun::Memory: too many elements");
    void* made = nullptr;
    detail::check([&](dtrun_error* e) { return allocate(count_ * sizeof(T), &made, e); });
    memory_.reset(static_cast<T*>(made));
  }
  struct Free {
    dtrun_comm* comm;
    void operator()(T* memory) const noexcept { dtrun_free(comm, memory); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t count_;
};

inline Stream::Stream(const Communicator& comm, int device_kind, int device_index, int priority)
    : comm_(comm.get()) {
  DTRUN_INIT(stream_);
  detail::check([&](dtrun_error* e) {
    return dtrun_stream_create(comm_, device_kind, device_index, priority, &stream_, e);
  });
}

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

#include "dtrun/group.hpp"
