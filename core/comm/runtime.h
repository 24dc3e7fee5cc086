// The runtime of a rank: store connection, backend plugin and the world communicator.
//
// One per process at a time. One thread makes and ends it; any thread may read
// it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/comm/communicator.h"
#include "core/comm/environment.h"
#include "core/comm/family.h"
#include "core/comm/hierarchy/hierarchy.h"
#include "core/comm/rank_devices.h"
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
  Status StartEngine();
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
  std::unique_ptr<dtrun_kv> kv_, device_kv_, making_kv_;
  std::unique_ptr<contract::Recorder> recorder_;
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

}  // namespace dtrun::comm
