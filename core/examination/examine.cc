#include <chrono>
#include <filesystem>
#include <utility>

#include "core/examination/check/checks.h"
#include "core/examination/examination.h"
#include "core/option/snapshot.h"
#include "core/plugin/plugin.h"
#include "core/pmi/kind.h"

namespace dtrun::examination {
namespace {

BackendAnswer Try(const BackendQuestion& backend, const Question& question,
                  const std::vector<std::string>& environment) {
  BackendAnswer answer{backend.name, backend.why_not};
  if (!answer.why_not.empty()) return answer;
  const auto refuse = [&](const std::string& why) {
    answer.why_not = why;
    return answer;
  };
  if (backend.pmix) {
    if (const Status servable = pmi::ServableHere(pmi::Kind::kPmix); !servable)
      return refuse(servable.error().text);
  }
  if (backend.name == "none") return answer;  // it needs nothing
  std::error_code none;
  if (!std::filesystem::exists(backend.path, none)) return refuse("'" + backend.path + "' is not there");
  auto probe =
      plugin::Probe::Start({plugin::Kind::kBackend, backend.name, backend.path, {}, {}, {}}, environment);
  if (!probe) return refuse(probe.error().text);
  const Result<dtrun_options> options = option::FromJson(backend.options_json);
  if (!options) return refuse(options.error().text);
  auto info = (*probe)->Launch(*options, question.host_count, question.local_ranks);
  if (!info) return refuse(info.error().text);
  for (const auto& [key, value] : info->facts) {
    if (key == "library") answer.library = value + answer.library;
    if (key == "p2p") answer.library += "; p2p " + value;
  }
  answer.why_not = plugin::Unusable(*info);
  std::erase_if(info->facts, [](const auto& fact) { return fact.first == "unusable"; });
  answer.info = *std::move(info);
  return answer;
}

}  // namespace

Answer Examine(const Question& question, const std::vector<std::string>& environment) {
  Answer answer;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  answer.clock_seconds = now.count();
  for (const BackendQuestion& backend : question.backends)
    answer.backends.push_back(Try(backend, question, environment));
  if (question.checks) answer.checks = CheckHost(question, answer.backends);
  return answer;
}

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOk: return "ok";
    case Level::kWarning: return "warning";
    case Level::kProblem: break;
  }
  return "problem";
}

}  // namespace dtrun::examination
