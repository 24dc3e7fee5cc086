// `dtrun PROGRAM`, `dtrun JOB.toml`, `dtrun plan`.
#include <fmt/format.h>

#include <cstdio>
#include <iterator>

#include "core/base/standard_output.h"
#include "core/launch/launch.h"
#include "core/node/serve.h"
#include "core/pmi/program.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

// Told by `dtrun explain`, which has more room.
bool ForExplain(const std::string& fact) { return fact == "algorithm" || fact == "wire" || fact == "memory"; }

// `asked`: for the backend, by the user. Else a program that does not call dtrun, such as a torch script,
// hears no more of it than its name.
std::string HeaderOf(const plan::Plan& plan, const std::string& run_dir, bool asked) {
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

class RunFront final : public launch::Front {
 public:
  RunFront(bool asked, bool quiet) : asked_(asked), quiet_(quiet) {}

  std::string Header(const plan::Plan& plan, const std::string& run_dir) override {
    return quiet_ ? "" : HeaderOf(plan, run_dir, asked_);
  }
  std::optional<node::OwnStart> Join() override {
    return quiet_ ? std::nullopt : std::optional(node::OwnStart());
  }

 private:
  const bool asked_, quiet_;
};

}  // namespace

int Run(const ConfigArguments& arguments) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  const bool asked = preparation->settings().Get("backend.name").origin.kind != DTRUN_ORIGIN_DEFAULT;
  RunFront front(asked, arguments.quiet);
  const Result<int> code = launch::Launch(*std::move(preparation), front, {{}, arguments.quiet});
  return code ? *code : Complain(code.error());
}

int RunAgent() {
  return node::Guarded([](process::Lifeline& lifeline) { return node::ServeFromStdin(lifeline); });
}

int ShowPlan(const ConfigArguments& arguments, bool json) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  const auto plan = preparation->MakePlan();
  if (!plan) return Complain(plan.error());
  WriteOutput(json ? plan::ToJson(*plan) : plan::ToText(*plan));
  return 0;
}

}  // namespace dtrun::cli
