// The plugin under test and its communicators, as C++ objects for tests.
//
// A Subject is loaded once per process and never unloaded. A Rank belongs to the thread
// that plays that rank, except where a test says otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backend_suite.h"
#include "dtrun/abi.h"
#include "host.h"

namespace dtrun::conformance {

using std::chrono::nanoseconds;

// Long enough for a loaded machine; a test that reaches it has found a hang.
inline constexpr nanoseconds kPatience = std::chrono::seconds(60);

// What a call returned.
struct Outcome {
  dtrun_status code = DTRUN_OK;
  int peer = -1;
  std::string text;
  bool ok() const { return code == DTRUN_OK; }
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

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

class Rank {
 public:
  Rank(const dtrun_backend* table, dtrun_backend_comm* comm, int rank, int size)
      : table_(table), comm_(comm), rank_(rank), size_(size) {}
  ~Rank() { table_->comm_destroy(comm_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Starts `op`; a refusal comes back in `refusal` (an EXPECT fails when that is null) and
  // gives a request that reports it. Collectives get the next sequence number.
  std::unique_ptr<Pending> Start(dtrun_op op, Outcome* refusal = nullptr);
  // Starts and waits.
  Outcome Do(const dtrun_op& op);
  Outcome Barrier();

  void Abort(const std::string& reason) const;
  std::vector<std::string> Snapshot() const;

 private:
  const dtrun_backend* table_;
  dtrun_backend_comm* comm_;
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

  const dtrun_plugin& plugin() const { return *plugin_; }
  const dtrun_backend& table() const { return *plugin_->backend; }
  dtrun_backend_caps Caps() const;
  // What the backend says at launch.
  struct Launch {
    std::map<std::string, std::string> facts;
    std::map<std::string, std::string> env;
  };
  Launch LaunchInfo(int host_count) const;

  // Joins rank `rank`; null when it fails.
  std::unique_ptr<Rank> Join(dtrun_kv* kv, int rank, int size, nanoseconds timeout, Outcome* outcome) const;

  // Plays `size` ranks of a fresh world on as many threads.
  void Play(int size, const std::function<void(Rank&)>& body) const;

 private:
  const dtrun_plugin* plugin_ = nullptr;
  std::unique_ptr<dtrun_options> options_;
  dtrun_instance* instance_ = nullptr;
};

// Ops, with sizes stamped and no timeout.
dtrun_op MakeOp(std::int32_t kind);
dtrun_op AllreduceOp(const void* send, void* recv, std::uint64_t count, std::int32_t dtype,
                     std::int32_t reduce);
dtrun_op SendOp(const void* send, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag);
dtrun_op RecvOp(void* recv, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag);

}  // namespace dtrun::conformance
