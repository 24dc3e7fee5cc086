#include "core/launch/policies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "core/base/suggest.h"
#include "core/base/units.h"
#include "core/launch/cluster.h"
#include "core/membership/network.h"
#include "core/plan/at.h"
#include "core/plan/dialects.h"
#include "core/plan/hosts.h"
#include "core/plan/network.h"
#include "core/plan/output.h"
#include "core/plugin/file_id.h"
#include "core/plugin/opened_file.h"

namespace dtrun::launch {
namespace {

const std::vector<std::string> kClasses = {"user-error", "signal", "out-of-memory", "rendezvous",
                                           "network",    "hang",   "launcher"};

std::string Meant(const std::string& word) {
  if (word == "oom") return "did you mean 'out-of-memory'?";
  if (const auto nearest = Nearest(word, kClasses)) return fmt::format("did you mean '{}'?", *nearest);
  return fmt::format("restart.on lists some of {}", fmt::join(kClasses, ", "));
}

}  // namespace

Result<job::RestartPolicy> RestartPolicyOf(const spec::JobSpec& spec) {
  job::RestartPolicy policy;
  policy.max = static_cast<int>(*spec.restart.max);
  policy.backoff = *spec.restart.backoff;
  for (const std::string& word : *spec.restart.on) {
    const auto exit_class = verdict::ClassNamed(word);
    if (!exit_class) {
      return plan::At(spec.restart.on, fmt::format("'{}' is not a failure class; {}", word, Meant(word)));
    }
    policy.on.insert(*exit_class);
  }
  return policy;
}

Result<observe::StallPolicy> StallPolicyOf(const spec::JobSpec& spec) {
  constexpr std::chrono::seconds kShortest{1};
  observe::StallPolicy policy;
  policy.fails = spec.watch.on_stall.is("fail");
  const std::string& text = *spec.watch.stall;
  if (text == "off") return policy;
  const Result<Nanoseconds> after = ParseDuration(text);
  if (!after || *after < kShortest) {
    Error error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("expected \"off\" or a duration from 1s to 10 years, such as \"10m\"; found '{}'", text)};
    const Result<Nanoseconds> seconds = ParseDuration(text + "s");
    if (!after && seconds && *seconds >= kShortest)
      error.text += fmt::format(", did you mean \"{}s\"?", text);
    return plan::At(spec.watch.stall, error);
  }
  policy.after = *after;
  return policy;
}

std::vector<Error> WrongValues(const spec::JobSpec& spec) {
  std::vector<Error> wrong;
  const auto take = [&](const auto& read) {
    if (!read) wrong.push_back(read.error());
  };
  take(RestartPolicyOf(spec));
  take(StallPolicyOf(spec));
  take(CheckAddresses(spec));
  take(CheckRemoteShell(spec));
  take(plan::CheckDialects(spec));
  take(plan::CheckRules(spec));
  take(plan::LogModeOf(spec));
  take(plan::StyleOf(spec));
  return wrong;
}

Status CheckInterface(const spec::JobSpec& spec) {
  if (plan::HasCluster(spec)) return {};
  const auto listed = plan::ListedHosts(spec);
  if (!listed) return listed.error();
  plan::Host here;
  here.name = listed->front().name;
  const auto rules = plan::NetworkRules(spec, {here});
  if (!rules) return rules.error();
  return rules->empty() ? Status() : membership::CheckNamesHere(rules->front());
}

std::string PinOf(const spec::AnyField& pins, const std::filesystem::path& file) {
  if (const auto* one = pins.as<std::string>()) return plugin::Sha256Id(*one);
  const auto* list = pins.as<std::vector<std::string>>();
  if (list == nullptr) return {};
  if (const auto opened = plugin::OpenedFile::Open(file)) {
    const auto id = plugin::FileId(*opened, "", plugin::Sha256Id(list->front()));
    for (const std::string& pin : *list) {
      if (id && *id == plugin::Sha256Id(pin)) return *id;
    }
  }
  return plugin::Sha256Id(list->front());
}

}  // namespace dtrun::launch
