// The launcher under test, jobs for it, and its plans as texts that can be compared.
//
// A LauncherSubject belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend_suite.h"
#include "dtrun/abi.h"
#include "host.h"

namespace dtrun::conformance {

// One process of a plan, copied.
struct PlannedProcess {
  int host_index = 0;
  int rank = 0;
  int local_rank = 0;
  int rank_count = 0;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  // an unset variable has the value "(unset)"
  std::string Text() const;
};

struct Plan {
  dtrun_status status = DTRUN_OK;
  std::string message;
  std::vector<PlannedProcess> processes;
  std::vector<std::string> notes;
  std::vector<std::string> problems;  // what the sink found wrong with what it was given
  bool exact_sizes = false;           // whether structs of the plugin have the sizes of these headers
  std::string Text() const;           // all but the problems
};

// A job of which host i has ranks[i] ranks. Owns what its struct points to.
class TestJob {
 public:
  explicit TestJob(const std::vector<int>& ranks);
  TestJob(const TestJob&) = delete;
  TestJob& operator=(const TestJob&) = delete;

  const dtrun_job& job() const { return job_; }
  const std::vector<int>& ranks() const { return ranks_; }
  // Lays its hosts out in elements of this size; what is behind these headers' members is garbage.
  void SetStride(std::size_t bytes);
  void SetFlagsOfHosts(std::uint32_t flags);

 private:
  const std::vector<int> ranks_;
  std::vector<std::string> names_;
  std::vector<dtrun_job_host> hosts_;
  std::vector<unsigned char> laid_;
  std::vector<const char*> argv_;
  dtrun_job job_;
};

class LauncherSubject {
 public:
  enum class OptionsOf { kTest, kDefaults };
  // Loads the plugin and makes an instance; throws std::runtime_error with the reason.
  explicit LauncherSubject(const BackendUnderTest& under_test, OptionsOf options = OptionsOf::kTest);
  ~LauncherSubject();
  LauncherSubject(const LauncherSubject&) = delete;
  LauncherSubject& operator=(const LauncherSubject&) = delete;

  const dtrun_launcher& table() const { return table_; }  // of full size
  dtrun_instance* instance() const { return instance_; }
  // Whether it was compiled with headers of the same version as this.
  bool HasTheseHeaders() const;
  // Whether it has `plan`; the rest is for those that do.
  bool Plans() const { return table_.plan != nullptr; }
  Plan PlanOf(const dtrun_job& job) const;
  dtrun_status Call(const dtrun_job* job, const dtrun_plan_sink* sink, dtrun_error* error) const;

 private:
  const dtrun_plugin* plugin_ = nullptr;
  dtrun_launcher table_{};
  std::unique_ptr<dtrun_options> options_;
  dtrun_instance* instance_ = nullptr;
};

// Expects the error of a call of `member`, which began empty, to agree with its status (E3).
void CheckError(const char* member, dtrun_status status, const dtrun_error& error);

// A sink that copies into `plan`, which outlives it.
dtrun_plan_sink CopyInto(Plan* plan);

}  // namespace dtrun::conformance
