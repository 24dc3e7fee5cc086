// `dtrun PROGRAM`, `dtrun JOB.toml`, `dtrun plan`.
#include <fmt/format.h>

#include <iterator>
#include <optional>

#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/contract/environment.h"
#include "core/hosts/this_machine.h"
#include "core/launch/environment.h"
#include "core/launch/launch.h"
#include "core/log/log.h"
#include "core/node/serve.h"
#include "core/options/text.h"
#include "core/pmi/program.h"
#include "core/spec/lookup.h"
#include "tools/dtrun/command_line/flags.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

// Shown by `dtrun explain`, which has more room.
bool ForExplain(const std::string& fact) {
  return fact == "algorithm" || fact == "wire" || fact == "memory" || fact == "device_kinds";
}

// Whether the program is known to call dtrun's library. A torch script, for example, brings its own.
bool CallsDtrun(const plan::Plan& plan) {
  return pmi::IsLinkedWith(plan.processes.front().argv.front(), "libdtrun.so");
}

// Whether torch.distributed is redirected to it: backend.torch.
bool LeadsTorch(const plan::Plan& plan) {
  return plan.processes.front().env.contains(contract::kTorchBackend);
}

std::string BackendText(const plan::Plan& plan) {
  const bool own = plan.backend == "none" || CallsDtrun(plan);
  if (!own && LeadsTorch(plan)) return plan.backend + ", also for torch.distributed (backend.torch)";
  if (own) return plan.backend;
  const bool python = FileName(plan.processes.front().argv.front()).starts_with("python");
  return plan.backend + ", for programs that call dtrun's API" +
         (python ? "; torch.distributed uses the backend that the script names" : "");
}

// One line per kind of memory.
void AddRoutes(const plan::Plan& plan, std::string* out) {
  for (std::size_t i = 0; i < plan.routes.size(); ++i)
    *out += fmt::format("  {:<10} {}\n", i == 0 ? "routes" : "", plan::RouteText(plan.routes[i]));
}

// The program, the backend with its transport, and the log folder.
std::string ShortHeader(const plan::Plan& plan, const std::string& run_dir) {
  std::string out = fmt::format("  backend    {}{}{}\n", BackendText(plan),
                                plan.network.empty() ? "" : "; network ", plan.network);
  const auto add_given_up = [&](const auto& facts) {
    for (const auto& [key, value] : facts) {
      const bool given_up = (key == "chosen" && value.starts_with("because ")) ||
                            (key == "p2p" && value.find("off") != value.npos);
      if (given_up) out += fmt::format("  {:<10} {}\n", key, value);
    }
  };
  // The route's line repeats the reason.
  if (plan.routes.empty()) add_given_up(plan.backend_facts);
  add_given_up(plan.device_facts);
  AddRoutes(plan, &out);
  if (!plan.binding.starts_with("none")) out += fmt::format("  binding    {}\n", plan.binding);
  return out + fmt::format("  logs       {}\n", options::ShownPath(run_dir));
}

std::string WholeHeader(const plan::Plan& plan, const std::string& run_dir) {
  std::string out;
  auto append = std::back_inserter(out);
  fmt::format_to(append, "  backend    {}\n", BackendText(plan));
  const auto add = [&](const auto& facts, bool unused) {
    for (const auto& [key, value] : facts) {
      if (!plan::ShowsFact(unused, key)) continue;
      // Paths between GPUs belong to the device backend, if there is one.
      const bool idle = key == "p2p" && &facts == &plan.backend_facts && !plan.device_backend.empty();
      if (!ForExplain(key) && !idle)
        fmt::format_to(append, "  {:<10} {}\n", key == "library_path" ? "from" : key, value);
    }
  };
  add(plan.backend_facts, plan.backend_idle);
  if (!plan.device_backend.empty()) fmt::format_to(append, "  devices    {}\n", plan.device_backend);
  add(plan.device_facts, false);
  AddRoutes(plan, &out);
  if (!plan.network.empty()) fmt::format_to(append, "  network    {}\n", plan.network);
  if (!plan.network_others.empty()) fmt::format_to(append, "  not used   {}\n", plan.network_others);
  fmt::format_to(append, "  binding    {}\n  logs       {}\n", plan.binding, options::ShownPath(run_dir));
  return out;
}

std::string HeaderOf(const plan::Plan& plan, const std::string& run_dir, bool verbose) {
  std::string out = fmt::format("dtrun {}  {}: {}, launcher {}\n", DTRUN_VERSION, plan.job,
                                plan::WorldText(plan), plan.launcher);
  out += verbose ? WholeHeader(plan, run_dir) : ShortHeader(plan, run_dir);
  for (const std::string& warning : plan.warnings) out += fmt::format("  warning    {}\n", warning);
  if (!verbose) return out;
  for (const std::string& note : plan.notes) out += fmt::format("  note       {}\n", note);
  return out;
}

std::optional<launch::Preparation> LoadToRun(const ConfigArguments& arguments) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return preparation;
  const spec::JobSpec& spec = preparation->spec();
  preparation->Warn(
      UnusedVariables(launch::RankEnvironment(), {*spec.launcher.name, spec.hosts_from.platform}));
  return preparation;
}

class RunFront final : public launch::Front {
 public:
  RunFront(bool verbose, bool quiet, const spec::JobSpec& spec) : verbose_(verbose), quiet_(quiet) {
    own_.options = spec::OptionsGiven(spec);
  }

  std::string Header(const plan::Plan& plan, const std::string& run_dir) override {
    return quiet_ ? "" : HeaderOf(plan, run_dir, verbose_);
  }
  std::optional<node::OwnStart> Join() override { return quiet_ ? std::nullopt : std::optional(own_); }

 private:
  const bool verbose_, quiet_;
  node::OwnStart own_;
};

}  // namespace

int Run(const ConfigArguments& arguments) {
  // The plan warns of invalid variables.
  log::Start(log::OptionsOfEnvironment(), hosts::HostName(), std::nullopt);
  auto preparation = LoadToRun(arguments);
  if (!preparation) return kUserError;
  RunFront front(arguments.verbose, arguments.quiet, preparation->spec());
  const Result<int> code = launch::Launch(*std::move(preparation), front, {{}, arguments.quiet});
  return code ? *code : Complain(code.error());
}

int RunAgent() {
  return node::Guarded([](process::Lifeline& lifeline) { return node::ServeFromStdin(lifeline); });
}

int PrintPlan(const plan::Plan& plan, bool json) {
  if (json) {
    plan::WriteJson(plan, WriteOutput);
  } else {
    WriteOutput(plan::ToText(plan));
  }
  return 0;
}

int ShowPlan(const ConfigArguments& arguments, bool json) {
  auto preparation = LoadToRun(arguments);
  if (!preparation) return kUserError;
  const auto plan = preparation->MakePlan();
  if (!plan) return Complain(plan.error());
  return PrintPlan(*plan, json);
}

}  // namespace dtrun::cli
