// The runtime of a rank: store connection, backend plugin and the world communicator.
//
// One per process at a time. One thread makes and ends it; any thread may read
// it.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "core/comm/communicator.h"
#include "core/comm/environment.h"
#include "core/comm/family.h"
#include "core/comm/hierarchy/hierarchy.h"
#include "core/comm/rank_devices.h"
#include "core/comm/turn.h"
#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"
#include "core/store/client.h"

namespace dtrun::comm {

class Runtime {
 public:
  // Meets the other ranks; blocks at most for the environment's timeout. Makes a world of one if dtrun did
  // not set the environment.
  static Result<std::unique_ptr<Runtime>> Join(Environment environment);
  // Destroys all communicators, ends the backend and signs off from the agent.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Environment& environment() const { return environment_; }
  dtrun_comm& world() { return *world_; }
  // The communicators made from the world.
  Family& family() { return *family_; }

 private:
  explicit Runtime(Environment environment) : environment_(std::move(environment)) {}
  Status JoinAlone();
  Status JoinJob();
  Status OpenRecorder();
  using Spaces = std::function<std::unique_ptr<dtrun_kv>(std::string prefix)>;
  // Starts the backend, and the shared-memory engine if it is used.
  Status Prepare(dtrun_kv& builds);
  Status StartBackend();
  // Shared memory for the ranks of each host, if the config and the backend allow it.
  // `of_host`: the backend moves host memory.
  Status StartEngine(bool of_host);
  Making WorldMaking();
  // If a rank cannot share memory with those of its host, all ranks learn this from the first try and make
  // the world over the backend alone.
  Result<std::unique_ptr<dtrun_comm>> MakeWorld(const Spaces& space);
  void OpenSpaces(const Spaces& space, const std::string& world);
  // Makes world creation fail on the other ranks.
  Error RefuseWorld(Error why);

  // For plugin members that no operation calls: where to report, and by when they must return.
  PluginReport PluginReports() const;
  std::function<void(int peer, std::string_view what)> HealthReport() const;
  Nanoseconds PluginLimit() const;

  const Environment environment_;
  // What plugins read through dtrun.health/1; shared with the hook, which may outlive this.
  const std::shared_ptr<std::atomic<bool>> ending_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<store::Client> client_;
  std::optional<Turn> turn_;
  std::unique_ptr<dtrun_kv> kv_, device_kv_, making_kv_;
  std::unique_ptr<contract::Recorder> recorder_;
  std::unique_ptr<TraceWriter> trace_;  // null: calls are not traced
  std::unique_ptr<HangWatch> hang_watch_;
  dtrun_options options_;  // read by the instance
  const plugin::Plugin* plugin_ = nullptr;
  dtrun_instance* instance_ = nullptr;
  dtrun_instance* engine_ = nullptr;  // shared memory; null: not used
  Layers layers_;                     // of several hosts
  std::atomic<bool> stuck_ = false;   // the backend has an operation that will never end
  std::unique_ptr<RankDevices> devices_;
  std::unique_ptr<dtrun_comm> world_;
  std::unique_ptr<Family> family_;
};

// ---- the only runtime of the process; Init and Finalize from one thread at a time, the rest from any ----

// The first call joins the job; later ones are counted.
Status Init();
// Undoes one Init; the last one leaves the job. No effect without an Init, or after a fork.
void Finalize();

// The runtime between the first Init and the last Finalize; null otherwise. A forked child still sees its
// parent's, but only for its numbers.
Runtime* Current();

// True in a child that was forked while the runtime was up: its sockets and threads belong
// to the parent, so it must not communicate.
bool Forked();
Error ForkError();

// The entry to the C API: lets no exception out, and rejects calls in a forked child.
//
// Stateless; any thread.

inline Error Thrown(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return Error{DTRUN_SYSTEM, NoThread()};
  return Error{DTRUN_INTERNAL, std::string("unexpected exception: ") + error.what()};
}

inline dtrun_status Returned(dtrun_status status, dtrun_error*) { return status; }
inline dtrun_status Returned(const Status& status, dtrun_error* err) {
  return status ? dtrun_status{DTRUN_OK} : status.error().CopyTo(err);
}

// Runs `body`, which returns a dtrun_status, or a Status that becomes one; so does an exception. `in_child`:
// in a forked child too.
template <class Body>
dtrun_status Guard(dtrun_error* err, Body&& body, bool in_child = false) noexcept {
  try {
    if (!in_child && Forked()) return ForkError().CopyTo(err);
    return Returned(body(), err);
  } catch (const std::bad_alloc&) {
    return Error{DTRUN_OUT_OF_MEMORY, {}}.CopyTo(err);
  } catch (const std::exception& error) {
    try {
      return Thrown(error).CopyTo(err);
    } catch (...) {
      return Error{DTRUN_INTERNAL, {}}.CopyTo(err);
    }
  } catch (...) {
    return Error{DTRUN_INTERNAL, {}}.CopyTo(err);
  }
}

// For functions that return nothing. `in_child` as in Guard.
template <class Body>
void GuardVoid(Body&& body, bool in_child = false) noexcept {
  (void)Guard(
      nullptr,
      [&] {
        body();
        return dtrun_status{DTRUN_OK};
      },
      in_child);
}

// Neither null nor ended.
inline bool IsOpen(const dtrun_comm* comm) { return comm != nullptr && dtrun_comm::IsHeld(comm); }

// Checks a handle before `body` uses it.
template <class Body>
dtrun_status WithComm(dtrun_comm* comm, dtrun_error* err, Body&& body) noexcept {
  return Guard(err, [&]() -> dtrun_status {
    if (IsOpen(comm)) return Returned(body(), err);
    if (comm != nullptr)
      return Error{
          DTRUN_FAILED_PRECONDITION,
          "the communicator was ended before, by finalize or free; after init dtrun_world gives the new one"}
          .CopyTo(err);
    return Error{DTRUN_INVALID_ARGUMENT, "the communicator is null; dtrun_world gives one after dtrun_init"}
        .CopyTo(err);
  });
}

inline Error AlreadyReleased(dtrun_work* work) {
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("the work handle {} was released before; release each handle once, and use it "
                           "before that only",
                           static_cast<void*>(work))};
}

// Checks a handle before `body` uses its communicator.
template <class Body>
dtrun_status WithWork(dtrun_work* work, dtrun_error* err, Body&& body) noexcept {
  return Guard(err, [&]() -> dtrun_status {
    if (work == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "the work handle is null"}.CopyTo(err);
    if (!dtrun_work::IsHeld(work)) return AlreadyReleased(work).CopyTo(err);
    if (work->comm == nullptr) {
      return Error{DTRUN_FAILED_PRECONDITION,
                   "the operation belongs to a communicator that finalize or free has ended"}
          .CopyTo(err);
    }
    return Returned(body(*work->comm), err);
  });
}

// `what`: "the stream". `least`: bytes of the struct in the first headers that had it.
template <class T>
Status CheckSize(const T* given, const char* call, const char* what,
                 std::size_t least = sdk::internal::kFloor<T>) {
  if (given != nullptr && given->struct_size >= least) [[likely]]
    return {};
  return Error{DTRUN_INVALID_ARGUMENT, given == nullptr
                                           ? fmt::format("{}: {} is null", call, what)
                                           : fmt::format("{}: {} has a struct_size of {}; DTRUN_INIT sets it",
                                                         call, what, given->struct_size)};
}

// A copy of the caller's struct, up to the fields that these headers know.
template <class T>
Result<T> Given(const T* given, const char* call, const char* what) {
  if (Status size = CheckSize(given, call, what); !size) return std::move(size).error();
  if (const std::uint32_t unknown = given->flags & DTRUN_FLAGS_MUST_UNDERSTAND; unknown != 0) [[unlikely]]
    return Error{DTRUN_UNSUPPORTED, fmt::format("{}: {} has the unknown flags {:#x}", call, what, unknown)};
  return sdk::internal::ReadStruct(given);
}

}  // namespace dtrun::comm
