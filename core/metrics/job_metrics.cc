#include "core/metrics/job_metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "core/base/endpoint.h"
#include "core/base/own_file.h"
#include "core/metrics/open_metrics.h"
#include "core/metrics/usage.h"

namespace dtrun::metrics {
namespace {

using std::chrono::system_clock;

constexpr std::chrono::seconds kTick{1};
constexpr int kTicksBetweenSamples = 5;

double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

JobMetrics::JobMetrics(boost::asio::io_context& loop, int folder, const std::filesystem::path& path,
                       mode_t mode, Source source)
    : folder_(folder),
      path_(path),
      mode_(mode),
      timer_(loop),
      source_(std::move(source)),
      journal_(folder, path / kFile, mode) {
  Wait();
}

void JobMetrics::Wait() {
  timer_.expires_after(kTick);
  timer_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;
    if (++ticks_ % kTicksBetweenSamples == 0) Sample();
    source_.note(journal_.Write());
    Wait();
  });
}

void JobMetrics::Add(int rank, const store::Metrics& metrics) {
  const std::string host = source_.host_of(rank);
  if (host.empty()) return;
  const Time time = system_clock::now();
  for (const store::Metric& metric : metrics.values) {
    journal_.Add(
        metric.name, rank,
        {metric.value, metric.step, time - std::chrono::duration_cast<system_clock::duration>(metric.age)});
  }
  // Of processes of this host the kernel tells more.
  if (host == source_.here()) return;
  journal_.Add(kProcessor, rank, {Seconds(metrics.processor), {}, time});
  journal_.Add(kMemory, rank, {static_cast<double>(metrics.memory), {}, time});
}

void JobMetrics::Sample() {
  const control::Answer now = source_.now();
  if (now.ranks.empty()) return;
  const Time time = system_clock::now();
  const auto add = [&](const char* name, int rank, double value) {
    journal_.Add(name, rank, {value, {}, time});
  };
  int all = 0, alive = 0;
  std::vector<pid_t> pids;
  const std::string here = source_.here();
  for (const control::RankNow& rank : now.ranks) {
    all += rank.count;
    if (rank.ended || rank.pid == 0) continue;
    alive += rank.count;
    if (rank.host == here) pids.push_back(rank.pid);
  }
  add(kRanks, kOfTheJob, all);
  add(kRanksAlive, kOfTheJob, alive);
  add(kRestarts, kOfTheJob, static_cast<double>(now.generation));
  add(kQuiet, kOfTheJob, Seconds(now.quiet));
  const std::map<pid_t, Usage> used = UsageOf(pids);
  for (const control::RankNow& rank : now.ranks) {
    const auto found = used.find(rank.pid);
    if (rank.ended || rank.host != here || found == used.end()) continue;
    add(kProcessor, rank.rank, Seconds(found->second.processor));
    add(kMemory, rank.rank, static_cast<double>(found->second.memory));
  }
}

Result<std::string> JobMetrics::Listen(boost::asio::io_context& loop, const Listening& listening) {
  auto server = Server::Open(loop, listening, [this] {
    Sample();
    return OpenMetrics(journal_, source_.now(), source_.host_of);
  });
  if (!server) return std::move(server).error();
  server_ = *std::move(server);
  const std::string url =
      fmt::format("http://{}/metrics", EndpointText(listening.address, std::to_string(server_->port())));
  source_.note(ReplaceOwnFile(folder_, path_, kUrlFile, url + '\n', mode_));
  return url;
}

void JobMetrics::Finish() {
  timer_.cancel();
  if (server_ != nullptr) ::unlinkat(folder_, kUrlFile, 0);
  server_.reset();
  source_.note(journal_.Finish());
}

}  // namespace dtrun::metrics
