// A communicator: what stands between a program's call and the backend's enqueue.
//
// Checks arguments, numbers collectives, keeps their order, enforces their deadlines,
// remembers the first failure, aborts, and says which operation failed. The C API's opaque
// types are these classes. Owned by the runtime or its family; any thread may call, the
// destructor only when nobody else does. A blocking call takes one lock and allocates
// nothing of its own.
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

// How a communicator comes to be, and whom it tells.
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
  std::string interface_name;            // of this host, to reach the others; empty: not chosen
  std::string address;
  int local_processors = 0;  // of this host's ranks together
  std::uint64_t generation = 0;
  dtrun_kv* kv = nullptr;      // outlives the communicator
  Devices* devices = nullptr;  // outlives it too, as the next; null: it takes host memory only
  dtrun_kv* device_kv = nullptr;
  dtrun_kv* making_kv = nullptr;  // where ranks tell whether it was made (made_by_all.h); null: they do not
  Nanoseconds timeout{-1};        // of creation and of every operation; negative: no limit
  // What a backend may take, beyond an operation's timeout, to end it by itself.
  Nanoseconds patience = std::chrono::seconds(1);
  contract::Recorder* recorder = nullptr;  // outlives the communicator; null: calls are not recorded
  // The first failure that a peer or the time caused: rank (-1 unknown), text. With it comm_create is watched
  // (plugin_call.h).
  PluginReport report;
  // Where those of parts go: the rank and the members as ranks of the world. Null: nowhere.
  std::function<void(int peer, std::string_view what, const std::vector<int>& members)> report_of_part;
  // It was aborted on purpose.
  std::function<void(std::string_view reason)> aborted;
  // A line for the log.
  std::function<void(const std::string& what)> warn;
  // An operation on a stream has failed, and the program makes no call that would tell it; null: that is all.
  std::function<void(const std::string& what)> unheard;
  // An operation will not end and the backend cannot abort: it must never be ended.
  std::function<void()> stuck;

  // By when any member must have returned. Layers join the ranks of a host first, and then the hosts, each
  // for as long as the timeout at most. Negative: never.
  Nanoseconds Limit() const { return timeout.count() < 0 ? timeout : 2 * timeout + std::chrono::seconds(10); }
};

}  // namespace dtrun::comm

struct dtrun_comm {
 public:
  static dtrun::Result<std::unique_ptr<dtrun_comm>> Create(dtrun::comm::Making making);
  // Ends what still runs, aborting it where the backend can. Works that were not released
  // stay valid to release, and to nothing else.
  ~dtrun_comm();
  dtrun_comm(const dtrun_comm&) = delete;
  dtrun_comm& operator=(const dtrun_comm&) = delete;

  int rank() const { return making_.rank; }
  int size() const { return making_.size; }
  const dtrun::comm::Making& making() const { return making_; }
  // The backend's own.
  dtrun_backend_comm* raw() const { return host_.comm; }
  // The first failure, while there is one.
  dtrun::Status Usable();

  // For an operation of unknown origin, before Start.
  void ClearUnused(dtrun_op& op) const { dtrun::comm::ClearUnused(op, host_.scope); }
  // Runs `op`, or starts it when `out` is not null or a group is open. Sequence and flags are
  // filled here, and the timeout where it is 0.
  dtrun_status Start(dtrun_op& op, dtrun_work** out, dtrun_error* err) {
    return StartOn(host_, op, nullptr, out, err);
  }
  dtrun_status Test(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  // DTRUN_PENDING when it still runs after timeout_ns.
  dtrun_status Wait(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  void Release(dtrun_work* work);
  // A work whose communicator is gone.
  static void Delete(dtrun_work* work);

  dtrun_status GroupBegin(dtrun_error* err);
  // Hands out the group's one work, or waits for it when `out` is null.
  dtrun_status GroupEnd(dtrun_work** out, dtrun_error* err);

  dtrun_status Allocate(std::uint64_t bytes, void** out, dtrun_error* err);
  void Free(void* memory);
  // Of the host (`kind` and -1) or of a device.
  dtrun_status Register(void* memory, std::uint64_t bytes, std::int32_t kind, std::int32_t index,
                        dtrun_error* err);
  void Deregister(void* memory);

  // ---- devices: communicator_device.cc ----

  // Starts `op` on the stream; `out` null: nobody gets a handle.
  dtrun_status StartOnStream(dtrun_op& op, const dtrun_stream& stream, dtrun_work** out, dtrun_error* err);
  dtrun_status WaitOnStream(dtrun_work& work, const dtrun_stream& stream, dtrun_error* err);
  // Opens the route of that device, unless it is open. Collective.
  dtrun_status Connect(std::int32_t kind, std::int32_t index, dtrun_error* err);
  // The name of what carries, or would carry, that kind of memory.
  dtrun::Result<std::string_view> RouteOf(std::int32_t kind);
  bool OrdersOnHost(std::int32_t kind);
  dtrun_status AllocateOn(std::uint64_t bytes, std::int32_t kind, std::int32_t index, void** out,
                          dtrun_error* err);
  dtrun_status CreateStream(const dtrun_stream_params& params, std::int32_t kind, dtrun_stream* out,
                            dtrun_error* err);
  void DestroyStream(const dtrun_stream& stream);

  dtrun_status Abort(std::string_view reason, dtrun_error* err);
  // A call that returns nothing was wrong: the next one fails with it, and the log says so.
  void Misused(const char* call, const dtrun::Error& error);

 private:
  // Operations started between GroupBegin and GroupEnd.
  struct Group {
    bool open = false;
    std::thread::id owner;
    dtrun_work* first = nullptr;
    dtrun_work** end = nullptr;  // where the next one goes
    bool of_device = false;      // the device's backend has a group open, too
  };

  // Memory that was given out, and what takes it back.
  struct Block {
    bool of_device = false;
    bool of_backend = false;
    dtrun_mem_params params{};
  };

  // Memory of the program's that is registered. `end` is the address behind it.
  struct Registration {
    std::uintptr_t end = 0;
    const dtrun::comm::Route* route = nullptr;
    bool ready = false;  // the backend has it
  };

  explicit dtrun_comm(dtrun::comm::Making making);

  // Opens this communicator's ring; from now on a call that differs ends it.
  void StartRecording();
  void NoteEnd(const dtrun_op& op);
  // Calls that the other ranks are in or have not made, for a message about `op`.
  std::string Whereabouts(const dtrun_op& op) const;
  // "; its rank 1 is rank 3 of the job", where these differ.
  std::string RankInJob(int peer) const;

  // `stream` null: `op` is of host memory.
  dtrun_status StartOn(dtrun::comm::Route& route, dtrun_op& op, const dtrun_stream* stream, dtrun_work** out,
                       dtrun_error* err);
  // Takes `op` into the open group. REQUIRES enqueue_mutex_ and a group.
  dtrun::Status JoinGroup(dtrun::comm::Route& route, const dtrun_op& op, bool wants_work);
  // Later work on the stream starts after that one operation, which is no chain. Not under enqueue_mutex_.
  dtrun_status OrderBefore(const dtrun_stream& stream, dtrun_work& work, dtrun_error* err);
  // Waits for the operations of a group that no stream is to wait for; their streams do for the others.
  dtrun_status WaitForHosts(dtrun_work& group, dtrun_error* err);
  // A start that succeeded becomes `work` when that is not null. REQUIRES enqueue_mutex_ and an
  // OperationCall, as the next.
  dtrun_status Enqueue(dtrun::comm::Route& route, dtrun_op& op, const dtrun_stream* stream,
                       std::unique_ptr<dtrun_work>& work, dtrun_request** request, dtrun_error* cause);
  // Shows the other ranks a message that begins. REQUIRES enqueue_mutex_ and a ring.
  std::optional<dtrun::contract::MessageLog> NoteMessage(const dtrun::comm::Route& route, const dtrun_op& op);
  dtrun_status TestOne(dtrun_work& work, std::int32_t* done, dtrun_error* err);
  dtrun_status WaitOne(dtrun_work& work, std::int64_t timeout_ns, dtrun_error* err);
  dtrun_status WaitBlocking(const dtrun_op& op, dtrun_request* request, dtrun_error& cause, dtrun_error* err);
  // The backend let the deadline of `op` pass: fails the communicator and aborts it.
  dtrun_status Overrun(const dtrun::comm::Route& route, const dtrun_op& op, dtrun_error* err);
  // Leaves a request that will never end where it is.
  void ReleaseRequest(const dtrun::comm::Route& route, dtrun_request* request);
  // The last of a work, which is not watched any more.
  void Forget(dtrun_work* work);

  // The route of that device, which must be open.
  dtrun::Result<dtrun::comm::Route*> Opened(std::int32_t kind, std::int32_t index, const char* call);
  // The open route of devices, whose kind and index `stream` must have; opens it at first. `op` null: any.
  // `wish`: the words before the device in a refusal.
  dtrun::Result<dtrun::comm::Route*> RouteFor(const dtrun_stream& stream, const std::string& wish,
                                              const dtrun_op* op);
  // Connecting is a call of its own, with a number that it keeps when it is refused, on all ranks. `op`: the
  // collective for which it is made; null: none. REQUIRE connect_mutex_.
  dtrun::Status ConnectLocked(const dtrun_op* op, std::int32_t kind, std::int32_t index);
  dtrun::Status ConnectDevice(std::int32_t kind, std::int32_t index);
  // Shows the other ranks the call that connects; gives its number.
  std::uint64_t Announce(const dtrun_op* op, std::int32_t kind);
  // What would carry its memory, not open yet; the device's plugin is then known.
  dtrun::Result<std::unique_ptr<dtrun::comm::Route>> FindDevice(std::int32_t kind, std::int32_t index);
  // Asks the device's plugin about the buffers of `op`, and about its stream where there is one.
  [[gnu::cold]] dtrun_status PrepareOnDevice(const dtrun::comm::Route& route, const dtrun_op& op,
                                             const dtrun_stream* stream, bool wants_work, bool* captured,
                                             dtrun_error* err) const;
  dtrun::Result<dtrun_memory> MemoryOf(const dtrun_op& op, const void* buffer, const char* which) const;
  dtrun::Status CheckMemory(const dtrun_op& op, const dtrun::comm::Route& route) const;
  // Whether the stream is being captured, and the backend takes that.
  dtrun::Result<bool> Captures(const dtrun_op& op, const dtrun_stream& stream,
                               const dtrun::comm::Route& route, bool wants_work) const;
  // Ends what runs on devices: what was dropped may finish first.
  void EndWatch();
  // After a failure that the watch has found: tells of it when no call of the program's has.
  void TellUnheard();
  dtrun_status Keep(void* memory, const Block& block, void** out);

  // Remembers the failure of `op` if it is the first, and hands out the first. That the ranks' calls differ
  // is the cause before what the backend says.
  dtrun_status Fail(const dtrun_op& op, dtrun_status status, const dtrun_error& cause, dtrun_error* err);
  // Remembers it and tells the agent whom to blame. True when it is the first.
  bool Record(const dtrun::Error& error, const dtrun_error& cause);
  // True when this failure is the first.
  bool Remember(const dtrun::Error& error, const dtrun_error& cause);
  dtrun_status FirstFailure(dtrun_error* err);
  // Every route that can.
  void AbortBackend(std::string_view reason);
  void Link(dtrun_work& work);
  static void Unlink(dtrun_work& work);
  // The open routes; the second may be null.
  std::array<const dtrun::comm::Route*, 2> Routes() const { return {&host_, device_.load()}; }

  dtrun::comm::Making making_;
  dtrun::comm::Route host_;
  std::mutex connect_mutex_;  // guards the next three while they are made
  int connects_ = 0;          // that were tried; the same on all ranks
  std::unique_ptr<dtrun::comm::Route> device_route_;
  const dtrun::comm::Device* device_plugin_ = nullptr;
  std::atomic<dtrun::comm::Route*> device_ = nullptr;  // device_route_, once it is open
  dtrun::contract::Ring* ring_ = nullptr;              // written under enqueue_mutex_, but for its ends

  std::mutex enqueue_mutex_;  // guards the next three, and the order of enqueue
  std::uint64_t sequence_ = 0;
  dtrun_work* works_ = nullptr;
  Group group_;
  dtrun::comm::DeviceWatch watch_;

  std::mutex memory_mutex_;        // guards the next four
  std::map<void*, Block> memory_;  // given out and not freed
  std::map<std::uintptr_t, Registration> registered_;
  std::vector<dtrun_stream> streams_;
  std::set<std::string> route_names_;  // that RouteOf gave

  std::atomic<bool> failed_ = false;
  std::atomic<bool> heard_ = false;  // a call has told the program of the failure
  std::atomic<bool> stuck_ = false;
  std::mutex failure_mutex_;  // guards failure_ until failed_ is true, when it is final
  dtrun_error failure_{};
};
