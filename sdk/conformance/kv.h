// Key-value spaces for ranks under test: shared by the threads of a process, or by
// processes through a folder. Thread-safe; outlive every communicator that uses them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/abi/host.h"

// The ABI's opaque space, as this host defines it.
struct dtrun_kv {
  using Deadline = std::chrono::steady_clock::time_point;

  // Of a part: the ranks of the whole that its ranks are, and whether reports of its peers go nowhere.
  std::vector<int> ranks;
  bool quiet = false;

  virtual ~dtrun_kv() = default;
  virtual void Set(const std::string& key, const std::string& value) = 0;
  virtual std::optional<std::string> TryGet(const std::string& key) = 0;
  virtual bool Erase(const std::string& key) = 0;
  // Replaces the value by what `change` returns; false when it returns nullopt.
  using Change = std::optional<std::string> (*)(const std::optional<std::string>& now, void* context);
  virtual bool Update(const std::string& key, Change change, void* context) = 0;
  // False when `deadline` came first.
  virtual bool WaitFor(const std::vector<std::string>& keys, Deadline deadline) = 0;
  // The space in which its communicator is made: itself, unless it is a part of one.
  virtual dtrun_kv& Making() { return *this; }
};

namespace dtrun::conformance {

class ThreadKv final : public dtrun_kv {
 public:
  void Set(const std::string& key, const std::string& value) override;
  std::optional<std::string> TryGet(const std::string& key) override;
  bool Erase(const std::string& key) override;
  bool Update(const std::string& key, Change change, void* context) override;
  bool WaitFor(const std::vector<std::string>& keys, Deadline deadline) override;
  void Clear();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// One file per key, replaced atomically. Update takes a lock on the folder; waiting polls. Makes the folder,
// with an existing parent; removes nothing.
class FolderKv final : public dtrun_kv {
 public:
  explicit FolderKv(std::string folder);
  void Set(const std::string& key, const std::string& value) override;
  std::optional<std::string> TryGet(const std::string& key) override;
  bool Erase(const std::string& key) override;
  bool Update(const std::string& key, Change change, void* context) override;
  bool WaitFor(const std::vector<std::string>& keys, Deadline deadline) override;

 private:
  std::string Path(const std::string& key) const;
  const std::string folder_;
};

// Why the communicator of this space cannot be made, which one of its ranks has found; then its ranks get no
// key that is not there (B17).
struct InVain {
  int peer = -1;
  std::string text;
};
void SetInVain(dtrun_kv& kv, const InVain& why);
std::optional<InVain> WhyInVain(dtrun_kv& kv);

// A part of another space, which outlives it. `own`: a communicator of its own is made in it.
class PartKv final : public dtrun_kv {
 public:
  PartKv(dtrun_kv* whole, std::string prefix, bool own = false)
      : whole_(whole), prefix_(std::move(prefix)), own_(own) {}
  dtrun_kv& Making() override { return own_ ? *this : whole_->Making(); }
  void Set(const std::string& key, const std::string& value) override { whole_->Set(prefix_ + key, value); }
  std::optional<std::string> TryGet(const std::string& key) override { return whole_->TryGet(prefix_ + key); }
  bool Erase(const std::string& key) override { return whole_->Erase(prefix_ + key); }
  bool Update(const std::string& key, Change change, void* context) override {
    return whole_->Update(prefix_ + key, change, context);
  }
  bool WaitFor(const std::vector<std::string>& keys, Deadline deadline) override {
    std::vector<std::string> names;
    for (const std::string& key : keys) names.push_back(prefix_ + key);
    return whole_->WaitFor(names, deadline);
  }

 private:
  dtrun_kv* const whole_;
  const std::string prefix_;
  const bool own_;
};

// The "dtrun.kv/1" and "dtrun.memory/1" tables.
const dtrun_kv_service* KvService();
const dtrun_memory_service* MemoryService();

}  // namespace dtrun::conformance
