#include <nlohmann/json.hpp>

#include "core/agent/process.h"
#include "core/agent/verdict.h"

namespace dtrun::agent {
namespace {

const char* ResultName(const Facts& facts) {
  if (facts.guard_died) return "guard killed";
  if (facts.first_failed >= 0) return "failed";
  if (facts.interrupt != 0) return "interrupted";
  return "succeeded";
}

}  // namespace

std::string VerdictJson(const Facts& facts) {
  using Json = nlohmann::ordered_json;
  auto seconds = [](std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  Json ranks = Json::array();
  for (const RankFacts& rank : facts.ranks) {
    Json reports = Json::array();
    for (const PeerReport& report : rank.reports)
      reports.push_back({{"peer", report.peer}, {"what", report.what}});
    Json ending = nullptr;
    if (rank.ending) {
      ending = {{"code", rank.ending->signal == 0 ? Json(rank.ending->code) : Json(nullptr)},
                {"signal", rank.ending->signal == 0 ? Json(nullptr) : Json(SignalName(rank.ending->signal))},
                {"core_dumped", rank.ending->core_dumped},
                {"at_seconds", seconds(rank.ended_at)}};
    }
    ranks.push_back(
        {{"rank", rank.rank},
         {"host", rank.host},
         {"pid", rank.pid},
         {"joined", rank.joined},
         {"left", rank.left},
         {"ending", ending},
         {"stopped_with", rank.signal_sent == 0 ? Json(nullptr) : Json(SignalName(rank.signal_sent))},
         {"last_output", rank.tail},
         {"reports", reports}});
  }
  const Json verdict = {
      {"job", facts.job},
      {"result", ResultName(facts)},
      {"exit_code", ExitCode(facts)},
      {"duration_seconds", seconds(facts.duration)},
      {"first_failed_rank", facts.first_failed < 0
                                ? Json(nullptr)
                                : Json(facts.ranks[static_cast<std::size_t>(facts.first_failed)].rank)},
      {"interrupt", facts.interrupt == 0 ? Json(nullptr) : Json(SignalName(facts.interrupt))},
      {"ranks", ranks}};
  // Output of ranks need not be UTF-8.
  return verdict.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string NotStartedJson(const std::string& job, const std::string& error) {
  using Json = nlohmann::ordered_json;
  const Json verdict = {{"job", job}, {"result", "not started"}, {"exit_code", 2}, {"error", error}};
  return verdict.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dtrun::agent
