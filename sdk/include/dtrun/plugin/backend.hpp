// backend.hpp - base classes of a transport, and the C table made from them.
//
// Core owns the objects: it makes the backend, asks it for communicators, asks those for requests, and
// destroys all three in the opposite order. dtrun/abi/backend.h says which threads call a method, beside the
// slot of the same name. Overrides are public and not overloaded.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtrun/abi/device.h"
#include "dtrun/plugin/deadline.hpp"
#include "dtrun/plugin/options.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {
  // Bits({DTRUN_ALLREDUCE, DTRUN_BARRIER}): a mask of Caps.
  constexpr std::uint64_t Bits(std::initializer_list<int> values) {
    std::uint64_t mask = 0;
    for (const int value : values) mask |= std::uint64_t{1} << value;
    return mask;
  }

  // What the backend can do. Whether it can abort is known from Communicator::Abort.
  struct Caps {
    std::uint64_t ops = 0;
    std::uint64_t dtypes = 0;                                // that it moves
    std::uint64_t reduces = 0;                               // how it combines elements
    std::uint64_t reduce_dtypes = 0;                         // that it combines
    std::uint64_t device_kinds = Bits({DTRUN_DEVICE_HOST});  // kinds of memory that it moves
    std::uint64_t max_bytes = 0;                             // largest buffer of one operation; 0: no limit
    bool any_source = false;                                 // a receive may match a message of any rank
    bool lazy_connect = false;  // ranks connect when they first talk; a large communicator costs little
    bool lossy = false;         // sums of float32 and float64 are less accurate than rule C10 says
    bool detached = false;      // takes operations with DTRUN_OP_DETACHED
    bool capture = false;       // and on a stream that is being captured into a graph
    bool stream_order = false;  // messages wait for the operations before them
    bool no_stream = false;     // takes memory of devices without a stream

    // Every operation, type and reduction of ABI 1.0, in host memory; none of the rest. What later versions
    // add is not in it: a backend that is compiled again claims nothing new.
    static Caps Everything() {
      const auto up_to = [](int last) { return (std::uint64_t{2} << last) - 2; };  // all values from 1
      Caps caps;
      caps.ops = up_to(DTRUN_SCATTERV);
      caps.dtypes = up_to(DTRUN_COMPLEX128);
      caps.reduces = up_to(DTRUN_LOR);
      caps.reduce_dtypes = caps.dtypes;
      return caps;
    }
  };

  struct CommParams {
    int rank = 0;
    int size = 1;
    int host_count = 1;
    std::uint64_t generation = 0;
    std::string name;
    Kv kv;
    Nanoseconds timeout = kNoLimit;   // for creation, and default for operations
    int host = 0;                     // ranks of one host share the number
    std::string interface_name = {};  // was tested to reach the other hosts; empty: dtrun has chosen none
    std::string address = {};         // its numeric address
    int local_processors = 0;         // that the job's ranks on this host may use together; 0: not known
    int local_rank = 0;               // among this communicator's ranks on this host
    std::vector<int> hosts = {};      // of each rank, numbers as `host` is one
    int device_kind = DTRUN_DEVICE_HOST;
    int device_index = -1;                 // of this rank's device; -1 with DTRUN_DEVICE_HOST
    dtrun_backend_comm* parent = nullptr;  // internal::As<internal::Comm<CommT>>(parent)->object; null: none
    std::vector<int> parent_ranks = {};    // of each rank, its rank in parent

    // Whether a host has more ranks than processors for them. REQUIRES hosts with equally many.
    bool Oversubscribed() const {
      return local_processors > 0 && (size + host_count - 1) / host_count > local_processors;
    }
  };

  // Takes the facts and environment variables of Backend::LaunchInfo.
  class LaunchSink {
   public:
    explicit LaunchSink(const dtrun_launch_sink* sink)
        : sink_(internal::ReadKnown(sink, "dtrun_launch_sink")) {}
    void Fact(const std::string& key, const std::string& value) const {
      const auto fact = internal::Offered(sink_.fact, "facts");
      Check([&](dtrun_error* e) { return fact(sink_.context, key.c_str(), internal::View(value), e); });
    }
    void Env(const std::string& name, const std::string& value) const {
      const auto env = internal::Offered(sink_.env, "variables of a backend");
      Check([&](dtrun_error* e) { return env(sink_.context, name.c_str(), value.c_str(), e); });
    }

   private:
    const dtrun_launch_sink sink_;
  };

  // Takes the lines of Communicator::Snapshot.
  class SnapshotSink {
   public:
    explicit SnapshotSink(const dtrun_snapshot_sink* sink)
        : sink_(internal::ReadKnown(sink, "dtrun_snapshot_sink")) {}
    void Line(const std::string& text) const {
      const auto line = internal::Offered(sink_.line, "lines of a snapshot");
      Check([&](dtrun_error* e) { return line(sink_.context, internal::View(text), e); });
    }

   private:
    const dtrun_snapshot_sink sink_;
  };

  // An operation under way. The destructor waits for it if it still runs. One outcome,
  // reported by throwing its Failure from every call.
  class Request {
   public:
    Request() = default;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    virtual ~Request() = default;

    // True when done. [any]
    virtual bool Test() = 0;
    // Sleeps until done, at most `timeout`; false when it still runs. [any]
    virtual bool Wait(Nanoseconds timeout) = 0;
    // Optional: orders later work on `stream` after the result. [comm-serial]
    virtual void WaitStream(const dtrun_stream& /*stream*/) {
      throw Failure(DTRUN_UNSUPPORTED, "this backend has no streams");
    }
  };

  // RequestT derives from Request.
  template <class RequestT>
  class Communicator {
   public:
    using RequestType = RequestT;

    Communicator() = default;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    virtual ~Communicator() = default;

    // Starts `op`; never waits for a peer. Null: it has completed already. `stream` is null for host memory.
    // `op` is a copy of full size: members that an older host lacks are zero. [comm-serial] or [any]
    virtual std::unique_ptr<RequestT> Enqueue(const dtrun_op& op, const dtrun_stream* stream) = 0;
    // Optional: every pending and later call fails with DTRUN_ABORTED in bounded time. May
    // be called more than once. [abort-safe]
    virtual void Abort(const std::string& /*reason*/) {}
    // Optional: what this rank last started and completed. [abort-safe]
    virtual void Snapshot(const SnapshotSink& /*sink*/) {}
    // Optional, both or none: what is enqueued between the two may be started as one.
    // [comm-serial]
    virtual void GroupBegin() {}
    virtual void GroupEnd() {}
    // Optional, both or none: zeroed memory that this transport moves fastest. [any]
    virtual void* MemAlloc(const dtrun_mem_params& /*params*/) { return nullptr; }
    virtual void MemFree(void* /*memory*/) {}
    // Optional, both or none: makes memory of the program ready, params.bytes from `memory` on. [any]
    virtual void MemRegister(const dtrun_mem_params& /*params*/, void* /*memory*/) {}
    virtual void MemDeregister(void* /*memory*/) {}
  };

  // CommT derives from Communicator. The derived class has a public constructor
  // (const Host&, const Options&), called by `init`: the place to open a vendor library.
  template <class CommT>
  class Backend {
   public:
    using CommunicatorType = CommT;
    static constexpr int kKind = DTRUN_KIND_BACKEND;

    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    // Pure. [any]
    virtual Caps QueryCaps() const = 0;
    // Collective over all ranks; ends within params.timeout. [control]
    virtual std::unique_ptr<CommT> CreateCommunicator(const CommParams& params) = 0;
    // Optional: chooses and reports; touches no peer, within 2 s. [control]
    virtual void LaunchInfo(const dtrun_launch_query& /*query*/, const LaunchSink& /*sink*/) {}
    // Optional: whether a combination works that the masks of Caps allow. The same at every call. Pure. [any]
    virtual bool Supports(const dtrun_support_query& /*query*/) const { return true; }
  };

  namespace internal {
  inline CommParams ReadCommParams(const Host& host, const dtrun_comm_params* params) {
    const dtrun_comm_params raw = ReadKnown(params, "dtrun_comm_params");
    const auto each = [&](const int* of) { return std::vector<int>(of, of == nullptr ? of : of + raw.size); };
    return {raw.rank,
            raw.size,
            raw.host_count,
            raw.generation,
            Text(raw.name),
            Kv(host, raw.kv),
            Nanoseconds(raw.timeout_ns),
            raw.host,
            Text(raw.interface_name),
            Text(raw.address),
            raw.local_processors,
            raw.local_rank,
            each(raw.hosts),
            raw.device_kind,
            raw.device_kind == DTRUN_DEVICE_HOST ? -1 : raw.device_index,
            raw.parent,
            each(raw.parent_ranks)};
  }

  // What a dtrun_backend_comm points to.
  template <class CommT>
  struct Comm {
    Host host;
    std::unique_ptr<CommT> object;
  };

  // The slots. T is the author's Backend.
  template <class T>
  struct BackendSlots {
    using CommT = typename T::CommunicatorType;
    using RequestT = typename CommT::RequestType;
    static_assert(std::is_base_of_v<Backend<CommT>, T>, "derive from dtrun::sdk::Backend<YourCommunicator>");
    static_assert(std::is_base_of_v<Communicator<RequestT>, CommT>,
                  "derive from dtrun::sdk::Communicator<YourRequest>");
    static_assert(std::is_base_of_v<Request, RequestT>, "derive from dtrun::sdk::Request");

    using Base = Backend<CommT>;
    using CommBase = Communicator<RequestT>;
    static constexpr bool kHasLaunchInfo = kOverridden<decltype(&T::LaunchInfo), decltype(&Base::LaunchInfo)>;
    static constexpr bool kHasSupports = kOverridden<decltype(&T::Supports), decltype(&Base::Supports)>;
    static constexpr bool kHasAbort = kOverridden<decltype(&CommT::Abort), decltype(&CommBase::Abort)>;
    static constexpr bool kHasSnapshot =
        kOverridden<decltype(&CommT::Snapshot), decltype(&CommBase::Snapshot)>;
    static constexpr bool kHasGroups = kOverridden<decltype(&CommT::GroupEnd), decltype(&CommBase::GroupEnd)>;
    static constexpr bool kHasMemory = kOverridden<decltype(&CommT::MemAlloc), decltype(&CommBase::MemAlloc)>;
    static constexpr bool kHasRegistration =
        kOverridden<decltype(&CommT::MemRegister), decltype(&CommBase::MemRegister)>;
    static constexpr bool kHasWaitStream =
        kOverridden<decltype(&RequestT::WaitStream), decltype(&Request::WaitStream)>;

    static T& Self(dtrun_instance* self) noexcept { return As<Instance<T>>(self)->object; }
    static const Host& HostOf(dtrun_backend_comm* handle) noexcept { return As<Comm<CommT>>(handle)->host; }
    static CommT& Of(dtrun_backend_comm* handle) noexcept { return *As<Comm<CommT>>(handle)->object; }

    static dtrun_status LaunchInfo(dtrun_instance* self, const dtrun_launch_query* query,
                                   const dtrun_launch_sink* sink, dtrun_error* err) noexcept {
      return Do(err,
                [&] { Self(self).LaunchInfo(ReadKnown(query, "dtrun_launch_query"), LaunchSink(sink)); });
    }
    static dtrun_status QueryCaps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) noexcept {
      return Do(err, [&] {
        const Caps caps = Self(self).QueryCaps();
        dtrun_backend_caps raw;
        DTRUN_INIT(raw);
        if (kHasAbort) raw.features |= DTRUN_CAP_ABORT;
        if (caps.any_source) raw.features |= DTRUN_CAP_ANY_SOURCE;
        if (caps.lazy_connect) raw.features |= DTRUN_CAP_LAZY_CONNECT;
        if (caps.lossy) raw.features |= DTRUN_CAP_LOSSY;
        if (caps.detached) raw.features |= DTRUN_CAP_DETACHED;
        if (caps.capture) raw.features |= DTRUN_CAP_CAPTURE;
        if (caps.stream_order) raw.features |= DTRUN_CAP_STREAM_ORDER;
        if (caps.no_stream) raw.features |= DTRUN_CAP_NO_STREAM;
        raw.ops = caps.ops;
        raw.dtypes = caps.dtypes;
        raw.reduces = caps.reduces;
        raw.reduce_dtypes = caps.reduce_dtypes;
        raw.device_kinds = caps.device_kinds;
        raw.max_bytes = caps.max_bytes;
        WriteStruct(out, raw);
      });
    }
    static dtrun_status CommCreate(dtrun_instance* self, const dtrun_comm_params* params,
                                   dtrun_backend_comm** out, dtrun_error* err) noexcept {
      return Do(err, [&] {
        const Host& host = As<Instance<T>>(self)->host;
        const CommParams given = ReadCommParams(host, params);
        auto comm = std::make_unique<Comm<CommT>>(Comm<CommT>{host, Self(self).CreateCommunicator(given)});
        if (comm->object == nullptr) throw Failure(DTRUN_INTERNAL, "CreateCommunicator returned null");
        *out = As<dtrun_backend_comm>(comm.release());
      });
    }
    static void CommDestroy(dtrun_backend_comm* handle) noexcept { delete As<Comm<CommT>>(handle); }
    static dtrun_status CommAbort(dtrun_backend_comm* handle, const dtrun_abort_params* params,
                                  dtrun_error* err) noexcept {
      return Do(err, [&] { Of(handle).Abort(Text(ReadKnown(params, "dtrun_abort_params").reason)); });
    }
    static dtrun_status Enqueue(dtrun_backend_comm* handle, const dtrun_op* op, const dtrun_stream* stream,
                                dtrun_request** out, dtrun_error* err) noexcept {
      return Guard(err, [&] {
        const dtrun_op raw = ReadKnown(op, "dtrun_op", DTRUN_OP_DETACHED);
        const dtrun_stream on = ReadKnown(stream, "dtrun_stream");
        std::unique_ptr<RequestT> request = Of(handle).Enqueue(raw, stream == nullptr ? nullptr : &on);
        if (request == nullptr) return dtrun_status{DTRUN_OK};
        *out = As<dtrun_request>(request.release());
        return dtrun_status{DTRUN_PENDING};
      });
    }
    static dtrun_status ReqTest(dtrun_request* handle, dtrun_error* err) noexcept {
      return Guard(err,
                   [&] { return dtrun_status{As<RequestT>(handle)->Test() ? DTRUN_OK : DTRUN_PENDING}; });
    }
    static dtrun_status ReqWaitHost(dtrun_request* handle, std::int64_t timeout_ns,
                                    dtrun_error* err) noexcept {
      return Guard(err, [&] {
        return dtrun_status{As<RequestT>(handle)->Wait(LimitOf(timeout_ns)) ? DTRUN_OK : DTRUN_PENDING};
      });
    }
    static dtrun_status ReqWaitStream(dtrun_request* handle, const dtrun_stream* stream,
                                      dtrun_error* err) noexcept {
      return Do(err, [&] { As<RequestT>(handle)->WaitStream(ReadKnown(stream, "dtrun_stream")); });
    }
    static void ReqRelease(dtrun_request* handle) noexcept { delete As<RequestT>(handle); }
    static void Snapshot(dtrun_backend_comm* handle, const dtrun_snapshot_sink* sink) noexcept {
      GuardVoid(HostOf(handle), "snapshot", [&] { Of(handle).Snapshot(SnapshotSink(sink)); });
    }
    static dtrun_status GroupBegin(dtrun_backend_comm* handle, const dtrun_group_params* params,
                                   dtrun_error* err) noexcept {
      return Do(err, [&] {
        ReadKnown(params, "dtrun_group_params");
        Of(handle).GroupBegin();
      });
    }
    static dtrun_status GroupEnd(dtrun_backend_comm* handle, const dtrun_group_params* params,
                                 dtrun_error* err) noexcept {
      return Do(err, [&] {
        ReadKnown(params, "dtrun_group_params");
        Of(handle).GroupEnd();
      });
    }
    static dtrun_status MemAlloc(dtrun_backend_comm* handle, const dtrun_mem_params* params, void** out,
                                 dtrun_error* err) noexcept {
      return Do(err, [&] {
        void* const memory = Of(handle).MemAlloc(ReadKnown(params, "dtrun_mem_params"));
        if (memory == nullptr) throw Failure(DTRUN_OUT_OF_MEMORY, "MemAlloc returned null");
        *out = memory;
      });
    }
    static void MemFree(dtrun_backend_comm* handle, void* memory) noexcept {
      GuardVoid(HostOf(handle), "mem_free", [&] { Of(handle).MemFree(memory); });
    }
    static dtrun_status MemRegister(dtrun_backend_comm* handle, const dtrun_mem_params* params, void* memory,
                                    dtrun_error* err) noexcept {
      return Do(err, [&] { Of(handle).MemRegister(ReadKnown(params, "dtrun_mem_params"), memory); });
    }
    static void MemDeregister(dtrun_backend_comm* handle, void* memory) noexcept {
      GuardVoid(HostOf(handle), "mem_deregister", [&] { Of(handle).MemDeregister(memory); });
    }

    static dtrun_status QuerySupport(dtrun_instance* self, const dtrun_support_query* query,
                                     dtrun_error* err) noexcept {
      return Guard(err, [&] {
        if (Self(self).Supports(ReadKnown(query, "dtrun_support_query"))) return dtrun_status{DTRUN_OK};
        return FillError(err, DTRUN_UNSUPPORTED, "this backend does not combine these");
      });
    }

    static constexpr dtrun_backend Table() {
      dtrun_backend table{};
      table.struct_size = sizeof table;
      if (kHasLaunchInfo) table.launch_info = &LaunchInfo;
      table.query_caps = &QueryCaps;
      table.comm_create = &CommCreate;
      table.comm_destroy = &CommDestroy;
      if (kHasAbort) table.comm_abort = &CommAbort;
      table.enqueue = &Enqueue;
      table.req_test = &ReqTest;
      table.req_wait_host = &ReqWaitHost;
      if (kHasWaitStream) table.req_wait_stream = &ReqWaitStream;
      table.req_release = &ReqRelease;
      if (kHasSnapshot) table.snapshot = &Snapshot;
      if (kHasGroups) table.group_begin = &GroupBegin;
      if (kHasGroups) table.group_end = &GroupEnd;
      if (kHasMemory) table.mem_alloc = &MemAlloc;
      if (kHasMemory) table.mem_free = &MemFree;
      if (kHasSupports) table.query_support = &QuerySupport;
      if (kHasRegistration) table.mem_register = &MemRegister;
      if (kHasRegistration) table.mem_deregister = &MemDeregister;
      return table;
    }
  };

  template <class T>
  inline constexpr dtrun_backend kBackendTable = BackendSlots<T>::Table();

  }  // namespace internal
}  // namespace v1
}  // namespace dtrun::sdk
