// The numbers of a running job: what its programs report with dtrun_metric, and dtrun's own, each few
// seconds. They go into metrics.jsonl and to who asks for them, and never into a verdict.
//
// Owned by the root's run; loop thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/base/asio.h"
#include "core/control/messages.h"
#include "core/metrics/journal.h"
#include "core/metrics/server.h"
#include "core/store/metric.h"

namespace dtrun::metrics {

inline constexpr char kUrlFile[] = "metrics.url";

class JobMetrics {
 public:
  struct Source {
    std::function<control::Answer()> now;          // the job at this moment
    std::function<std::string(int rank)> host_of;  // empty: there is no such rank
    std::function<std::string()> here;             // the name of this host in the job
    std::function<void(const Status&)> note;       // an error to tell the user
  };
  // `folder`, the open run folder at `path`, must outlive it.
  JobMetrics(boost::asio::io_context& loop, int folder, const std::filesystem::path& path, mode_t mode,
             Source source);
  ~JobMetrics() { *ended_ = true; }
  JobMetrics(const JobMetrics&) = delete;
  JobMetrics& operator=(const JobMetrics&) = delete;

  void Add(int rank, const store::Metrics& metrics);
  // Serves the newest values until Finish, and returns where: "http://127.0.0.1:9400/metrics", which the file
  // kUrlFile in the run folder has too.
  Result<std::string> Listen(boost::asio::io_context& loop, const Listening& listening);
  // Writes what is left.
  void Finish();

 private:
  void Wait();
  void Sample();

  const int folder_;
  const std::filesystem::path path_;
  const mode_t mode_;
  boost::asio::steady_timer timer_;
  const Source source_;
  Journal journal_;
  int ticks_ = 0;
  std::unique_ptr<Server> server_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for a queued timer handler
};

}  // namespace dtrun::metrics
