// `dtrun --config FILE`, `dtrun plan`, `dtrun config`.
#include <fmt/format.h>

#include <cstdio>
#include <iterator>

#include "core/agent/agent.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

constexpr int kUserError = 2;

void Complain(const std::string& text) { fmt::print(stderr, "dtrun: {}\n", text); }

std::string Header(const plan::Plan& plan, const std::string& run_dir) {
  std::string out =
      fmt::format("dtrun {}  job {}: {} rank{} on {} host{} ({}), launcher {}\n", DTRUN_VERSION, plan.job,
                  plan.world_size(), plan.world_size() == 1 ? "" : "s", plan.hosts.size(),
                  plan.hosts.size() == 1 ? "" : "s", plan.hosts[0].name, plan.launcher);
  auto append = std::back_inserter(out);
  std::string library;
  for (const auto& [key, value] : plan.backend_facts) {
    if (key == "library") library = ": " + value;
  }
  fmt::format_to(append, "  backend    {}{}\n", plan.backend, library);
  for (const auto& [key, value] : plan.backend_facts) {
    if (key != "library")
      fmt::format_to(append, "  {:<10} {}\n", key == "library_path" ? "from" : key, value);
  }
  fmt::format_to(append, "  logs       {}\n", run_dir);
  for (const std::string& note : plan.notes) fmt::format_to(append, "  note       {}\n", note);
  return out;
}

Result<agent::RestartPolicy> RestartPolicyOf(const config::Settings& settings) {
  agent::RestartPolicy policy;
  policy.max = static_cast<int>(settings.Int("restart.max"));
  policy.backoff = settings.Duration("restart.backoff");
  for (const std::string& word : settings.List("restart.on")) {
    const auto exit_class = agent::ClassNamed(word);
    if (!exit_class) {
      const std::string& place = settings.Get("restart.on").origin.place;
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("{}{}restart.on lists '{}'; expected some of user-error, signal, "
                               "out-of-memory, rendezvous, network",
                               place, place.empty() ? "" : ": ", word)};
    }
    policy.on.insert(*exit_class);
  }
  return policy;
}

// The job, or nothing after saying why.
std::optional<agent::RunRequest> RequestOrComplain(const ConfigArguments& arguments) {
  Preparation preparation = Preparation::Load(arguments);
  if (!preparation.problems().empty()) {
    fmt::print(stderr, "{}", config::Render(preparation.problems()));
    return std::nullopt;
  }
  auto restart = RestartPolicyOf(preparation.settings());
  if (!restart) {
    Complain(restart.error().text);
    return std::nullopt;
  }
  auto plan = preparation.MakePlan();
  if (!plan) {
    Complain(plan.error().text);
    return std::nullopt;
  }
  return agent::RunRequest{std::move(*plan), std::move(*restart), &Header};
}

}  // namespace

int Run(const ConfigArguments& arguments) {
  const auto request = RequestOrComplain(arguments);
  if (!request) return kUserError;
  return agent::Guarded([&](agent::Lifeline& lifeline) { return agent::Run(*request, lifeline); });
}

int ShowPlan(const ConfigArguments& arguments, bool json) {
  const auto request = RequestOrComplain(arguments);
  if (!request) return kUserError;
  fmt::print("{}", json ? plan::ToJson(request->plan) : plan::ToText(request->plan));
  return 0;
}

int CheckConfig(const ConfigArguments& arguments) {
  const Preparation preparation = Preparation::Load(arguments);
  if (!preparation.problems().empty()) {
    fmt::print(stderr, "{}", config::Render(preparation.problems()));
    return kUserError;
  }
  fmt::print("{}: ok\n", arguments.file);
  return 0;
}

int ExplainConfig(const ConfigArguments& arguments, const std::string& key) {
  const Preparation preparation = Preparation::Load(arguments);
  auto text = config::Explain(preparation.settings(), key);
  if (!text) {
    Complain(text.error().text);
    return kUserError;
  }
  fmt::print("{}", *text);
  if (preparation.problems().empty()) return 0;
  fmt::print(stderr, "{}", config::Render(preparation.problems()));
  return kUserError;
}

}  // namespace dtrun::cli
