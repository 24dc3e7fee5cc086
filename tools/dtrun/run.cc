// `dtrun PROGRAM`, `dtrun JOB.toml`, `dtrun plan`.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "core/job/agent.h"
#include "core/launch/cluster.h"
#include "core/launch/restart.h"
#include "core/launch/watch.h"
#include "core/node/serve.h"
#include "core/pmi/program.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

void Complain(const std::string& text) { fmt::print(stderr, "dtrun: {}\n", text); }

// Told by `dtrun explain`, which has more room.
bool ForExplain(const std::string& fact) { return fact == "algorithm" || fact == "wire"; }

// `asked`: for the backend, by the user. Else a program that does not call dtrun, such as a torch script,
// hears no more of it than its name.
std::string Header(const plan::Plan& plan, const std::string& run_dir, bool asked) {
  const bool told =
      asked || plan.hosts.size() > 1 || pmi::IsLinkedWith(plan.processes.front().argv.front(), "libdtrun.so");
  std::string out = fmt::format("dtrun {}  {}: {}, launcher {}\n", DTRUN_VERSION, plan.job,
                                plan::WorldText(plan), plan.launcher);
  auto append = std::back_inserter(out);
  std::string library;
  for (const auto& [key, value] : plan.backend_facts) {
    if (key == "library") library = ": " + value;
  }
  fmt::format_to(append, "  backend    {}{}{}\n", plan.backend, library,
                 told || plan.backend == "none" ? "" : ", for programs that call dtrun's library");
  for (const auto& [key, value] : plan.backend_facts) {
    if (told && key != "library" && !ForExplain(key))
      fmt::format_to(append, "  {:<10} {}\n", key == "library_path" ? "from" : key, value);
  }
  if (!plan.network.empty()) fmt::format_to(append, "  network    {}\n", plan.network);
  if (!plan.network_others.empty()) fmt::format_to(append, "  not used   {}\n", plan.network_others);
  fmt::format_to(append, "  binding    {}\n", plan.binding);
  fmt::format_to(append, "  logs       {}\n", run_dir);
  for (const std::string& note : plan.notes) fmt::format_to(append, "  note       {}\n", note);
  return out;
}

// The job, or nothing after saying why.
std::optional<job::RunRequest> RequestOrComplain(launch::Preparation& preparation, bool quiet) {
  auto complain = [](const Error& error) {
    Complain(error.text);
    return std::nullopt;
  };
  auto restart = launch::RestartPolicyOf(preparation.settings());
  if (!restart) return complain(restart.error());
  auto stall = launch::StallPolicyOf(preparation.settings());
  if (!stall) return complain(stall.error());
  auto plan = preparation.PlanOfRun();
  if (!plan) return complain(plan.error());
  auto cluster = launch::ClusterOf(preparation.settings());
  if (!cluster) return complain(cluster.error());
  const bool asked = preparation.settings().Get("backend.name").origin.kind != DTRUN_ORIGIN_DEFAULT;
  return job::RunRequest{
      std::move(*plan),
      std::move(*restart),
      quiet ? std::function<std::string(const plan::Plan&, const std::string&)>()
            : [asked](const plan::Plan& made,
                      const std::string& run_dir) { return Header(made, run_dir, asked); },
      std::move(*cluster),
      [&](const std::vector<plan::HostOffer>& offers, const std::vector<std::string>& answers,
          const network::Decision* network) { return preparation.PlanOfRun(offers, answers, network); },
      [&](const std::vector<plan::HostOffer>& offers) { return preparation.PreflightRequests(offers); },
      verdict::IsolationPolicyNamed(preparation.settings().Text("job.isolated_ranks")),
      *stall,
      quiet};
}

}  // namespace

int Run(const ConfigArguments& arguments) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  const auto join_request = launch::JoinRequestOf(preparation->settings());
  if (!join_request) {
    Complain(join_request.error().text);
    return kUserError;
  }
  if (join_request->has_value()) {
    preparation.reset();  // with the child that describes the backend
    ::unsetenv(launch::kClusterKey);
    const auto own = arguments.quiet ? std::nullopt : std::optional(node::OwnStart());
    return node::Guarded(
        [&](process::Lifeline& lifeline) { return node::Serve(**join_request, own, lifeline); });
  }
  const auto request = RequestOrComplain(*preparation, arguments.quiet);
  if (!request) return kUserError;
  ::unsetenv(launch::kClusterKey);  // has been read; ranks and remote shells inherit the rest
  return node::Guarded([&](process::Lifeline& lifeline) { return job::Run(*request, lifeline); });
}

int RunAgent() {
  return node::Guarded([](process::Lifeline& lifeline) { return node::ServeFromStdin(lifeline); });
}

int ShowPlan(const ConfigArguments& arguments, bool json) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  const auto plan = preparation->MakePlan();
  if (!plan) {
    Complain(plan.error().text);
    return kUserError;
  }
  fmt::print("{}", json ? plan::ToJson(*plan) : plan::ToText(*plan));
  return 0;
}

}  // namespace dtrun::cli
