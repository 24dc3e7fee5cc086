// A communicator: the layer between a program's call and the backend's enqueue.
//
// Checks arguments, numbers collectives, keeps their order and enforces their deadlines. Remembers the first
// failure, aborts, and reports which operation failed. The C API's opaque types are these classes. Owned by
// the runtime or its family. Any thread may call; the destructor must run alone. A blocking call takes one
// lock and makes no allocation of its own.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/comm/device_watch.h"
#include "core/comm/devices.h"
#include "core/comm/operation.h"
#include "core/comm/plugin_call.h"
#include "core/comm/route.h"
#include "core/comm/work.h"
#include "core/contract/messages.h"
#include "core/contract/recorder.h"
#include "dtrun/dtrun.h"

namespace dtrun::comm {

// How to create a communicator, and where it reports events.
struct Making {
  dtrun_backend backend{};             // full table
  dtrun_instance* instance = nullptr;  // outlives the communicator
  std::string backend_name;
  std::string name;  // "world"
  int rank = 0;
  int size = 1;
  int host_count = 1;
  int node_rank = 0;                     // the host of this rank
  std::vector<int> hosts;                // of each rank
  std::vector<int> world_ranks;          // of each rank; empty: these are the world's
  dtrun_backend_comm* parent = nullptr;  // of the communicator that this one is made from
  std::string interface_name;            // this host's, to reach the others; empty: not chosen
  std::string address;
  int local_processors = 0;  // available to this host's ranks together
  std::uint64_t generation = 0;
  dtrun_kv* kv = nullptr;      // outlives the communicator
  Devices* devices = nullptr;  // outlives it, as does device_kv; null: host memory only
  dtrun_kv* device_kv = nullptr;
  dtrun_kv* making_kv = nullptr;  // where ranks report the outcome (made_by_all.h); null: not reported
  Nanoseconds timeout{-1};        // of creation and of every operation; negative: no limit
  // How long beyond an operation's timeout a backend may take to end it by itself.
  Nanoseconds patience = std::chrono::seconds(1);
  contract::Recorder* recorder = nullptr;  // outlives the communicator; null: calls are not recorded
  // Reports the first failure caused by a peer or a timeout. If set, comm_create is watched (plugin_call.h).
  PluginReport report;
  // The same for communicators made from this one; all ranks are those of the world. Null: not reported.
  std::function<void(const Error& failure, const std::vector<int>& members)> report_of_part;
  // Reports an abort on purpose.
  std::function<void(std::string_view reason)> aborted;
  // Writes a line to the log.
  std::function<void(const std::string& what)> warn;
  // An operation on a stream failed, and the program makes no call that could report it. Null: no action.
  std::function<void(const std::string& what)> unheard;
  // An operation will not end and the backend cannot abort it: the communicator must never be ended.
  std::function<void()> stuck;

  // The time by which every member must have returned. Layers connect the ranks of a host first and then the
  // hosts, each within the timeout. Negative: no limit.
  Nanoseconds Limit() const { return timeout.count() < 0 ? timeout : 2 * timeout + std::chrono::seconds(10); }
};

}  // namespace dtrun::comm

struct dtrun_comm {
 public:
  static dtrun::Result<std::unique_ptr<dtrun_comm>> Create(dtrun::comm::Making making);
  // Ends operations still running, and aborts them if the backend can. Works that were not released may only
  // be released afterwards.
  ~dtrun_comm();
  dtrun_comm(const dtrun_comm&) = delete;
  dtrun_comm& operator=(const dtrun_comm&) = delete;

  int rank() const { return making_.rank; }
  int size() const { return making_.size; }
  const dtrun::comm::Making& making() const { return making_; }
  // The backend's communicator.
  dtrun_backend_comm* raw() const { return host_.comm; }
  // The first failure, if there is one.
  dtrun::Status Usable();

  // For an operation of unknown origin, before Start.
  void ClearUnused(dtrun_op& op) const { dtrun::comm::ClearUnused(op, host_.scope); }
  // Runs `op`, or starts it if `out` is not null or a group is open. Fills in sequence and flags, and the
  // timeout if it is 0.
  dtrun_status Start(dtrun_op& op, dtrun_work** out, dtrun_error* err) {
    return StartOn(host_, op, nullptr, out, err);
  }
  dtrun_status Test(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  // DTRUN_PENDING if it still runs after timeout_ns.
  dtrun_status Wait(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  void Release(dtrun_work* work);
  // Deletes a work that has outlived its communicator.
  static void Delete(dtrun_work* work);

  dtrun_status GroupBegin(dtrun_error* err);
  // Returns the group's single work, or waits for it if `out` is null.
  dtrun_status GroupEnd(dtrun_work** out, dtrun_error* err);

  dtrun_status Allocate(std::uint64_t bytes, void** out, dtrun_error* err);
  void Free(void* memory);
  // For host memory (`kind` and -1) or a device's.
  dtrun_status Register(void* memory, std::uint64_t bytes, std::int32_t kind, std::int32_t index,
                        dtrun_error* err);
  void Deregister(void* memory);

  // ---- devices: communicator_device.cc ----

  // Starts `op` on the stream. `out` null: returns no handle.
  dtrun_status StartOnStream(dtrun_op& op, const dtrun_stream& stream, dtrun_work** out, dtrun_error* err);
  dtrun_status WaitOnStream(dtrun_work& work, const dtrun_stream& stream, dtrun_error* err);
  // Opens the route of that device if it is not open. Collective.
  dtrun_status Connect(std::int32_t kind, std::int32_t index, dtrun_error* err);
  // The name of the backend that carries, or would carry, that kind of memory.
  dtrun::Result<std::string_view> RouteOf(std::int32_t kind);
  bool OrdersOnHost(std::int32_t kind);
  dtrun_status AllocateOn(std::uint64_t bytes, std::int32_t kind, std::int32_t index, void** out,
                          dtrun_error* err);
  dtrun_status CreateStream(const dtrun_stream_params& params, std::int32_t kind, dtrun_stream* out,
                            dtrun_error* err);
  void DestroyStream(const dtrun_stream& stream);

  dtrun_status Abort(std::string_view reason, dtrun_error* err);
  // Records misuse of a call that returns nothing: logs it and lets the next call fail with it.
  void Misused(const char* call, const dtrun::Error& error);

 private:
  // Operations started between GroupBegin and GroupEnd.
  struct Group {
    bool open = false;
    std::thread::id owner;
    dtrun_work* first = nullptr;
    dtrun_work** end = nullptr;  // where to link the next one
    bool of_device = false;      // the device's backend has an open group, too
  };

  // Memory that was handed out, and how to free it.
  struct Block {
    bool of_device = false;
    bool of_backend = false;
    dtrun_mem_params params{};
  };

  // Registered memory of the program. `end` is the address behind it.
  struct Registration {
    std::uintptr_t end = 0;
    const dtrun::comm::Route* route = nullptr;
    bool ready = false;  // the backend has it
  };

  explicit dtrun_comm(dtrun::comm::Making making);

  // Opens this communicator's ring; from now on a differing call on another rank ends it.
  void StartRecording();
  void NoteEnd(const dtrun_op& op);
  // Adds what core knows about the failure of `op` to what the backend has said: id, arguments, the ranks,
  // and calls that the other ranks are in or have not made.
  void AddFacts(const dtrun_op& op, dtrun::Error& error) const;
  // "; its rank 1 is rank 3 of the job", if the numbers differ.
  std::string RankInJob(int peer) const;

  // `stream` null: `op` uses host memory.
  dtrun_status StartOn(dtrun::comm::Route& route, dtrun_op& op, const dtrun_stream* stream, dtrun_work** out,
                       dtrun_error* err);
  // Adds `op` to the open group. REQUIRES enqueue_mutex_ and a group.
  dtrun::Status JoinGroup(dtrun::comm::Route& route, const dtrun_op& op, bool wants_work);
  // Makes later work on the stream wait for that one operation, not for a chain. Not under enqueue_mutex_.
  dtrun_status OrderBefore(const dtrun_stream& stream, dtrun_work& work, dtrun_error* err);
  // Waits for the group's operations that no stream waits for; streams wait for the others.
  dtrun_status WaitForHosts(dtrun_work& group, dtrun_error* err);
  // Enqueues `op`; on success turns it into `work`, if that is not null. REQUIRES enqueue_mutex_ and an
  // OperationCall.
  dtrun_status Enqueue(dtrun::comm::Route& route, dtrun_op& op, const dtrun_stream* stream,
                       std::unique_ptr<dtrun_work>& work, dtrun_request** request, dtrun_error* cause);
  // Publishes the start of a message to the other ranks. REQUIRES enqueue_mutex_ and a ring.
  std::optional<dtrun::contract::MessageLog> NoteMessage(const dtrun::comm::Route& route, const dtrun_op& op);
  dtrun_status TestOne(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  dtrun_status WaitOne(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  dtrun_status WaitBlocking(const dtrun_op& op, dtrun_request* request, dtrun_error& cause, dtrun_error* err);
  // The backend missed the deadline of `op`: fails and aborts the communicator.
  dtrun_status Overrun(const dtrun::comm::Route& route, const dtrun_op& op, dtrun_error* err);
  // Releases a request, or leaks it if it will never end.
  void ReleaseRequest(const dtrun::comm::Route& route, dtrun_request* request);
  // Deletes a work that is no longer watched.
  void Forget(dtrun_work* work);

  // The route of that device; an error if it is not open.
  dtrun::Result<dtrun::comm::Route*> Opened(std::int32_t kind, std::int32_t index, const char* call);
  // The open device route, which must match kind and index of `stream`; opens it on first use. `op` null:
  // any. `wish`: the words before the device in an error message.
  dtrun::Result<dtrun::comm::Route*> RouteFor(const dtrun_stream& stream, const std::string& wish,
                                              const dtrun_op* op);
  // Connecting is a call with its own number, which all ranks keep even if it is refused. `op`: the
  // collective that needs it; null: none. Both REQUIRE connect_mutex_.
  dtrun::Status ConnectLocked(const dtrun_op* op, std::int32_t kind, std::int32_t index);
  dtrun::Status ConnectDevice(std::int32_t kind, std::int32_t index);
  // Publishes the connecting call to the other ranks; returns its number.
  std::uint64_t Announce(const dtrun_op* op, std::int32_t kind);
  // The route that would carry the device's memory, not open yet. Sets device_plugin_.
  dtrun::Result<std::unique_ptr<dtrun::comm::Route>> FindDevice(std::int32_t kind, std::int32_t index);
  // Asks the device's plugin about the buffers of `op`, and about its stream if there is one.
  [[gnu::cold]] dtrun_status PrepareOnDevice(const dtrun::comm::Route& route, const dtrun_op& op,
                                             const dtrun_stream* stream, bool wants_work, bool* captured,
                                             dtrun_error* err) const;
  dtrun::Result<dtrun_memory> MemoryOf(const dtrun_op& op, const void* buffer, const char* which) const;
  dtrun::Status CheckMemory(const dtrun_op& op, const dtrun::comm::Route& route) const;
  // Whether the stream is being captured; an error if the backend cannot be captured.
  dtrun::Result<bool> Captures(const dtrun_op& op, const dtrun_stream& stream,
                               const dtrun::comm::Route& route, bool wants_work) const;
  // Ends what runs on devices; dropped operations may finish first.
  void EndWatch();
  // After a failure that the watch found: reports it if no call of the program has.
  void TellUnheard();
  dtrun_status Keep(void* memory, const Block& block, void** out);

  // Remembers the failure of `op` if it is the first, and returns the first. If the ranks' calls differ, that
  // is the cause, whatever the backend reports.
  dtrun_status Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause, dtrun_error* err);
  // Remembers it and reports the peer to blame to the agent. True if it is the first.
  bool Record(const dtrun::Error& error);
  // True if this failure is the first.
  bool Remember(const dtrun::Error& error);
  dtrun_status FirstFailure(dtrun_error* err);
  // Aborts every route that can be aborted.
  void AbortBackend(std::string_view reason);
  void Link(dtrun_work& work);
  static void Unlink(dtrun_work& work);
  // The open routes; the second may be null.
  std::array<const dtrun::comm::Route*, 2> Routes() const { return {&host_, device_.load()}; }

  dtrun::comm::Making making_;
  dtrun::comm::Route host_;
  std::mutex connect_mutex_;  // guards the next three while they are made
  int connects_ = 0;          // attempts; the same on all ranks
  std::unique_ptr<dtrun::comm::Route> device_route_;
  const dtrun::comm::Device* device_plugin_ = nullptr;
  std::atomic<dtrun::comm::Route*> device_ = nullptr;  // device_route_, once it is open
  dtrun::contract::Ring* ring_ = nullptr;              // written under enqueue_mutex_, except for ended calls

  std::mutex enqueue_mutex_;  // guards the next three, and the order of enqueue
  std::uint64_t sequence_ = 0;
  dtrun_work* works_ = nullptr;
  Group group_;
  dtrun::comm::DeviceWatch watch_;

  std::mutex memory_mutex_;        // guards the next four
  std::map<void*, Block> memory_;  // handed out and not freed
  std::map<std::uintptr_t, Registration> registered_;
  std::vector<dtrun_stream> streams_;
  std::set<std::string> route_names_;  // returned by RouteOf

  std::atomic<bool> failed_ = false;
  std::atomic<bool> heard_ = false;  // a call has reported the failure to the program
  std::atomic<bool> stuck_ = false;
  std::mutex failure_mutex_;  // guards failure_ until failed_ is true, when it is final
  dtrun::Error failure_;
};
