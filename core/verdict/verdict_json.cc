#include <algorithm>

#include "core/base/json.h"
#include "core/failures/report.h"
#include "core/process/process.h"
#include "core/verdict/cause.h"
#include "core/verdict/text.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

constexpr int kVerdictSchema = 1;  // docs/stability.md

double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// Why ranks other than the first failed one are blamed.
Json SuspicionJson(const Facts& facts, const Cause& cause) {
  if (cause.suspicion.kind == Suspicion::Kind::kNone) return nullptr;
  Json ranks = Json::array();
  for (const std::size_t index : cause.suspicion.indices) ranks.push_back(facts.ranks[index].blamed());
  return {{"ranks", ranks},
          {"why", SuspicionName(cause.suspicion.kind)},
          {"seen_first",
           cause.kind == Cause::Kind::kStalled ? Json(nullptr) : Json(facts.ranks[cause.first].blamed())}};
}

Json LastOutput(const RankFacts& rank) {
  Json lines = Json::array();
  const std::size_t skipped = rank.tail.size() - std::min(rank.tail.size(), kTailLines);
  for (std::size_t i = skipped; i < rank.tail.size(); ++i) lines.push_back(rank.tail[i]);
  return lines;
}

Json KnownJson(const RankFacts& rank) {
  if (!rank.known) return nullptr;
  Json known = failures::ToJson(rank.known->finding);
  known["file"] = rank.known->file.empty() ? Json(nullptr) : Json(rank.known->file.string());
  known["recent"] = rank.known->recent;
  return known;
}

Json SignalOrNull(int signal) { return signal == 0 ? Json(nullptr) : Json(process::SignalName(signal)); }
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json StragglerJson(const Facts& facts) {
  if (!facts.straggler) return nullptr;
  const Straggler& straggler = *facts.straggler;
  return {{"rank", straggler.rank},
          {"percent", straggler.percent},
          {"looks", straggler.looks},
          {"place", OrNull(straggler.place)},
          {"busy_with_pid", straggler.rival == 0 ? Json(nullptr) : Json(straggler.rival)},
          {"busy_with", OrNull(straggler.rival_command)},
          {"text", StragglerText(straggler)}};
}

// Summary of a generation, without its ranks.
Json SummaryJson(const GenerationSummary& summary) {
  return {{"generation", summary.generation},
          {"result", summary.result},
          {"exit_class", OrNull(summary.exit_class)},
          {"exit_code", summary.exit_code},
          {"duration_seconds", Seconds(summary.duration)},
          {"first_failed_rank", summary.first_failed_rank ? Json(*summary.first_failed_rank) : Json(nullptr)},
          {"lost_host", OrNull(summary.lost_host)},
          {"interrupt", SignalOrNull(summary.interrupt)}};
}

const char* ResultName(const Facts& facts) {
  if (facts.guard_died) return "guard killed";
  if (!facts.regroup.empty()) return "regrouped";
  switch (FindCause(facts).kind) {
    case Cause::Kind::kNone:
    case Cause::Kind::kGuard: return "succeeded";
    case Cause::Kind::kInterrupt: return "interrupted";
    default: return "failed";
  }
}

}  // namespace

GenerationSummary Summarise(const Facts& facts) {
  const Cause cause = FindCause(facts);
  GenerationSummary summary;
  summary.generation = facts.generation;
  summary.result = ResultName(facts);
  if (cause.kind != Cause::Kind::kNone) summary.exit_class = ClassName(cause.exit_class);
  summary.exit_code = ExitCode(facts);
  summary.duration = facts.duration;
  if (cause.kind == Cause::Kind::kRank) summary.first_failed_rank = facts.ranks[cause.index].blamed();
  if (cause.kind == Cause::Kind::kHost) summary.lost_host = facts.losses[cause.index].host;
  summary.interrupt = facts.interrupt;
  return summary;
}

std::string VerdictJson(const Facts& facts, const fact::Earlier& earlier, std::uint64_t lines_not_shown) {
  Json ranks = Json::array();
  for (const RankFacts& rank : facts.ranks) {
    Json reports = Json::array();
    for (const PeerReport& report : rank.reports)
      reports.push_back({{"peer", report.peer}, {"what", report.what}});
    Json ending = nullptr;
    if (rank.ending) {
      ending = {{"code", rank.ending->signal == 0 ? Json(rank.ending->code) : Json(nullptr)},
                {"signal", SignalOrNull(rank.ending->signal)},
                {"core_dumped", rank.ending->core_dumped},
                {"out_of_memory", rank.ending->out_of_memory},
                {"stopped_by", SignalOrNull(rank.ending->stopped_by)},
                {"at_seconds", Seconds(rank.ended_at)}};
    }
    ranks.push_back({{"rank", rank.rank},
                     {"rank_count", rank.count},
                     {"host", rank.host},
                     {"pid", rank.pid},
                     {"joined", rank.joined},
                     {"left", rank.left},
                     {"mpi_abort", rank.abort ? Json(rank.abort->code) : Json(nullptr)},
                     {"ending", ending},
                     {"stopped_with", SignalOrNull(rank.signal_sent)},
                     {"last_output", LastOutput(rank)},
                     {"place", OrNull(PlaceText(rank))},
                     {"known_failure", KnownJson(rank)},
                     {"reports", reports}});
  }
  Json losses = Json::array();
  for (const HostLoss& loss : facts.losses) {
    losses.push_back({{"host", loss.host}, {"why", loss.why}, {"at_seconds", Seconds(loss.at)}});
  }
  Json all = Json::array();
  const GenerationSummary last = Summarise(facts);
  for (const GenerationSummary& generation : earlier.first) all.push_back(SummaryJson(generation));
  for (const GenerationSummary& generation : earlier.latest) all.push_back(SummaryJson(generation));
  all.push_back(SummaryJson(last));
  Json verdict = {{"job", facts.job}};
  verdict.update(SummaryJson(last));
  verdict["job_seconds"] = Seconds(facts.elapsed);
  const Cause cause = FindCause(facts);
  verdict["blamed"] = SuspicionJson(facts, cause);
  const bool of_plugin = cause.exit_class == ExitClass::kPlugin;
  verdict["plugin"] = of_plugin ? OrNull(PluginAtFault(facts.ranks[cause.index])) : Json(nullptr);
  verdict["text"] = cause.kind == Cause::Kind::kNone ? Json(nullptr) : Json(VerdictText(facts));
  verdict["straggler"] = StragglerJson(facts);
  verdict["lines_not_shown"] = lines_not_shown;
  verdict["interrupt_host"] = OrNull(facts.interrupt_host);
  verdict["lost_hosts"] = losses;
  verdict["ranks"] = ranks;
  verdict["generations"] = all;
  verdict["generations_omitted"] = earlier.omitted;  // between the first and the latest
  return JsonDocument(kVerdictSchema, verdict);
}

std::string AgentKilledJson(const std::string& job, int signal) {
  const Json verdict = {{"job", job},
                        {"result", "agent killed"},
                        {"exit_class", ClassName(ExitClass::kLauncher)},
                        {"exit_code", 128 + signal},
                        {"error", "the agent was killed by " + process::SignalName(signal)}};
  return JsonDocument(kVerdictSchema, verdict);
}

std::string NotStartedJson(const std::string& job, const Error& error) {
  const ExitClass exit_class = error.code == DTRUN_TIMEOUT          ? ExitClass::kRendezvous
                               : error.code == DTRUN_REMOTE_FAILURE ? ExitClass::kNetwork
                                                                    : ExitClass::kUserError;
  const Json verdict = {{"job", job},
                        {"result", "not started"},
                        {"exit_class", ClassName(exit_class)},
                        {"exit_code", 2},
                        {"error", error.text}};
  return JsonDocument(kVerdictSchema, verdict);
}

}  // namespace dtrun::verdict
