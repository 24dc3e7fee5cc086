// The plugin under test and its communicators, as C++ objects for tests.
//
// A Subject is loaded once per process and never unloaded. A Rank belongs to the thread
// that plays that rank, except where a test says otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_suite.h"
#include "dtrun/abi.h"
#include "dtrun/abi/device.h"
#include "host.h"
#include "kv.h"
#include "outcome.h"
#include "rank_watch.h"

namespace dtrun::conformance {

using std::chrono::nanoseconds;

// Long enough for a loaded machine; a test that reaches it has found a hang. Half of the ranks' time limit,
// 60 s unless that is changed.
inline const nanoseconds kPatience = nanoseconds(RankTimeLimit()) / 2;

inline constexpr nanoseconds kNoLimit{-1};

// A request; released on destruction.
class Pending {
 public:
  Pending(const dtrun_backend* table, dtrun_request* request) : table_(table), request_(request) {}
  Pending(Pending&& other) noexcept
      : table_(other.table_), request_(std::exchange(other.request_, nullptr)) {}
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();

  Outcome Wait(nanoseconds timeout = kPatience) const;
  // Whether it is done, and how it ended.
  Outcome Test(bool* done) const;
  // Tests again and again until it is done, at most kPatience.
  Outcome Poll() const;

 private:
  const dtrun_backend* table_;
  dtrun_request* request_;
};

class Subject;

class Rank {
 public:
  // `kv` outlives it.
  Rank(const Subject& subject, dtrun_backend_comm* comm, dtrun_kv* kv, int rank, int size)
      : subject_(subject), comm_(comm), kv_(kv), rank_(rank), size_(size) {}
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const Subject& subject() const { return subject_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // For what this class does not offer.
  dtrun_backend_comm* raw() const { return comm_; }

  // Starts `op`; a refusal comes back in `refusal` (an EXPECT fails when that is null) and
  // gives a request that reports it. Collectives get the next sequence number.
  std::unique_ptr<Pending> Start(dtrun_op op, Outcome* refusal = nullptr);
  // Starts and waits.
  Outcome Do(const dtrun_op& op);
  Outcome Barrier();

  void Abort(const std::string& reason) const;
  std::vector<std::string> Snapshot() const;

  // Operations started between the two form a group. REQUIRES: the backend has groups.
  Outcome GroupBegin() const;
  Outcome GroupEnd() const;
  // Memory from the backend, null when it gives none. REQUIRES: the backend has such memory.
  void* Alloc(std::uint64_t bytes) const;
  void Free(void* memory) const;
  Outcome Register(void* memory, std::uint64_t bytes, std::int32_t device_kind = DTRUN_DEVICE_HOST) const;
  void Deregister(void* memory) const;

  // A further communicator, made from this one: its members are these ranks of this one, in their order.
  // Null, and a failed expectation, when it does not come about. Its other ranks use the same name.
  std::unique_ptr<Rank> Further(const std::string& name, const std::vector<int>& members) const;

  // Signals between ranks that do not use the backend. Await fails an expectation and returns
  // if no rank has told `word` after kPatience.
  void Tell(const std::string& word) const;
  void Await(const std::string& word) const;
  // Whether a rank tells `word` within that time.
  bool IsTold(const std::string& word, std::chrono::milliseconds within) const;
  // Returns when all ranks have come here, without the backend. Once for each word.
  void Meet(const std::string& word) const;
  // Adds to a number that all ranks see and returns it.
  std::int64_t Count(const std::string& word, std::int64_t amount) const;

 private:
  const dtrun_backend* table() const;

  const Subject& subject_;
  std::unique_ptr<dtrun_kv> own_kv_;  // of a further communicator
  dtrun_backend_comm* comm_;
  dtrun_kv* kv_;
  const int rank_;
  const int size_;
  std::uint64_t sequence_ = 0;
};

class Subject {
 public:
  // Loads the plugin and makes an instance; throws std::runtime_error with the reason.
  explicit Subject(const BackendUnderTest& under_test);
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  dtrun_instance* instance() const { return instance_; }
  const dtrun_backend& table() const { return *plugin_->backend; }
  const dtrun_plugin& plugin() const { return *plugin_; }
  // Whether it was compiled with headers of the same version as this.
  bool HasTheseHeaders() const {
    return plugin_->abi_major == DTRUN_ABI_MAJOR && plugin_->abi_minor_built == DTRUN_ABI_MINOR;
  }
  dtrun_backend_caps Caps() const;
  bool CanAbort() const { return (Caps().features & DTRUN_CAP_ABORT) != 0; }
  // Whether it says that sums of float32 and float64 keep no bound (C10).
  bool SumsAreLossy() const;
  // Whether it combines elements of this type in this way.
  bool Reduces(const dtrun_backend_caps& caps, std::int32_t dtype, std::int32_t reduce) const;
  // What the backend says at launch.
  struct Launch {
    std::map<std::string, std::string> facts;
    std::map<std::string, std::string> env;
  };
  Launch LaunchInfo(int host_count) const;

  // Joins rank `rank`; null when it fails.
  enum class Hosts { kGiven, kUnknown };
  struct Making {
    dtrun_kv* kv;  // with a parent: `ranks` are those of it
    int rank, size;
    nanoseconds timeout;
    Hosts hosts;
    const Rank* parent;  // null: none
  };
  std::unique_ptr<Rank> Create(const Making& making, Outcome* outcome) const;
  std::unique_ptr<Rank> Join(dtrun_kv* kv, int rank, int size, nanoseconds timeout, Outcome* outcome,
                             Hosts hosts = Hosts::kGiven) const;

  // Plays `size` ranks of a fresh world on as many threads, none when the test allows fewer; or in a launched
  // process its own, and none when the launcher started another number.
  void Play(int size, const std::function<void(Rank&)>& body) const;
  // The same, before anybody has joined.
  void PlayWithoutJoining(int size, const std::function<void(dtrun_kv* kv, int rank)>& body) const;
  // Ranks are threads of this process.
  bool InOneProcess() const { return process_.size == 0; }

  // Whether Play or PlayWithoutJoining did anything since the last call; false, too, when none was called.
  // `wanted` receives a size that was not there.
  bool TakePlayed(int* wanted);
  // Parts the key-value spaces of launched processes: one name per case.
  void EnterCase(const std::string& name);

 private:
  const LaunchedProcess process_;
  const int most_ranks_;
  std::string case_;
  mutable int runs_ = 0;  // of this case
  mutable bool played_ = false;
  mutable int wanted_ = 0;
  const dtrun_plugin* plugin_ = nullptr;
  std::unique_ptr<dtrun_options> options_;
  dtrun_instance* instance_ = nullptr;
};

// Ops, with sizes stamped and no timeout.
dtrun_op MakeOp(std::int32_t kind);
// Whether a mask of Caps has a value of types.h.
bool Has(std::uint64_t mask, std::int32_t value);
dtrun_op AllreduceOp(const void* send, void* recv, std::uint64_t count, std::int32_t dtype,
                     std::int32_t reduce);
dtrun_op SendOp(const void* send, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag);
dtrun_op RecvOp(void* recv, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag);

}  // namespace dtrun::conformance
