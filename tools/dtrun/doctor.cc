#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/environments/libraries.h"
#include "core/hosts/this_machine.h"
#include "core/launch/cluster.h"
#include "core/launch/launch.h"
#include "core/launch/modules.h"
#include "core/membership/ask_hosts.h"
#include "core/membership/network.h"
#include "core/plan/command.h"
#include "core/plan/network.h"
#include "core/preflight/preflight.h"
#include "core/preflight/report.h"
#include "core/preflight/routes.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

using preflight::BackendRequest;
using preflight::DoctorReport;
using preflight::Level;

constexpr int kProblems = 1;
constexpr char kSameEnd[] = "a job would end the same way, before any rank starts; fix this first";

struct DoctorArguments {
  bool json = false;
  std::string timeout = "20s";  // for all hosts to join
};

// What to check, and where.
struct Visit {
  std::string job;
  std::vector<std::string> hosts;                // by name
  std::vector<preflight::Request> requests;      // by host
  std::vector<plan::NetworkRule> network_rules;  // by host
  std::optional<membership::Cluster> cluster;    // unset: only this host
  std::string platform = {};                     // the source of the hosts; empty: none
  std::string refusal = {};                      // why no plan could be made; empty: no problem
  preflight::RouteWish wish = {};                // for the first backends that are queried
  bool stages = true;                            // device memory may be staged through host memory
  std::vector<preflight::Check> unknown = {};    // names without a plugin
};

// A plugin with its default options, or its problem if it cannot be described.
BackendRequest WithDefaults(const ConfigArguments& arguments, const plugin::File& file) {
  BackendRequest request{file.name, file.path.string(), "", "", false};
  if (const auto defaults = launch::DefaultsOf(file, arguments.plugin_dirs)) {
    request.options_json = options::ToJson(defaults->backend_options.front().Snapshot());
  } else {
    request.why_not = defaults.error().text;
  }
  return request;
}

// The backends that the job requests, and all others that are installed.
std::vector<BackendRequest> Backends(const ConfigArguments& arguments, const launch::Preparation& preparation,
                                     const std::vector<plan::Host>& hosts) {
  int world_size = 0;
  for (const plan::Host& host : hosts) world_size += host.local_size;
  std::vector<BackendRequest> requests =
      preparation.BackendRequests(static_cast<int>(hosts.size()), world_size);
  std::erase_if(requests, [](const BackendRequest& one) { return one.name == "none"; });
  const spec::JobSpec& spec = preparation.spec();
  const auto folders = plugin::SearchPath(
      arguments.plugin_dirs, spec.plugins.path.has() ? *spec.plugins.path : std::vector<std::string>());
  for (const plugin::File& file : plugin::FindAll(folders)) {
    const bool known = std::ranges::any_of(requests, [&](const auto& one) { return one.name == file.name; });
    if (file.kind == plugin::Kind::kBackend && !known) requests.push_back(WithDefaults(arguments, file));
  }
  return requests;
}

Result<Nanoseconds> ReadTimeout(const std::string& text) {
  const Result<Nanoseconds> limit = ParseDuration(text);
  if (limit && limit->count() > 0) return limit;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("--timeout '{}': expected a number and a unit, more than 0, such as 20s or 2m",
                           Printable(text))};
}

// Checks the hosts that join in time even if others are missing.
void Limit(Nanoseconds timeout, membership::Cluster* cluster) {
  cluster->join_timeout = cluster->last_call = std::min(cluster->join_timeout, timeout);
  cluster->min_hosts = 1;
}

Result<Visit> Plan(const ConfigArguments& arguments, launch::Preparation& preparation, Nanoseconds timeout) {
  const spec::JobSpec& spec = preparation.spec();
  const auto environment = launch::RankEnvironment();
  const auto here = plan::OfferHere();
  if (!here) return here.error();
  auto hosts = plan::PlaceRanks(spec, plan::HardwareHere(spec, environment, *here), {});
  if (!hosts) return hosts.error();
  auto cluster = launch::ClusterOf(spec, {}, preparation.launchers());
  if (!cluster) return cluster.error();
  if (*cluster) Limit(timeout, &**cluster);
  auto rules = plan::NetworkRules(spec, *hosts);
  if (!rules) return rules.error();
  Visit visit{*spec.job.name, {}, {}, *std::move(rules), *std::move(cluster)};
  visit.platform = spec.hosts_from.platform;
  if (const Status checked = preparation.Check(); !checked) visit.refusal = checked.error().text;
  const std::vector<BackendRequest> backends = Backends(arguments, preparation, *hosts);
  visit.wish = preparation.Wish();
  visit.stages = spec.backend.staging.is("auto");
  visit.unknown = preparation.UnknownBackends();
  for (const plan::Host& host : *hosts) visit.hosts.push_back(host.name);
  auto variables = environment;
  if (spec.job.env.has()) {
    for (const auto& [name, value] : *spec.job.env) variables[name] = value;
  }
  std::erase_if(variables, [](const auto& one) { return !environments::NamesInterfaces(one.first); });
  // Without a command a placeholder is used.
  const bool any_program = spec.job.command.place().empty() && arguments.command.empty();
  const bool asks_modules = !any_program && visit.refusal.empty();
  const auto modules =
      asks_modules ? launch::ModulesToAsk(spec, preparation.program()) : preflight::ModuleRequest();
  if (!modules) visit.refusal = modules.error().text;
  std::error_code unknown;
  const std::string folder = spec.job.cwd.value_or(std::filesystem::current_path(unknown).string());
  for (std::size_t i = 0; i < hosts->size(); ++i) {
    preflight::Request request;
    request.backends = backends;
    request.host_count = static_cast<int>(hosts->size());
    request.local_ranks = (*hosts)[i].local_size;
    request.checks = true;
    if (hosts->size() > 1) request.host_names = visit.hosts;
    request.host = static_cast<int>(i);
    request.master_port = static_cast<int>(*spec.job.master_port);
    if (!any_program) {
      request.program = plan::CommandOf(spec, environment, folder).front();
    }
    if (modules) request.modules = *modules;
    request.folder = folder;
    request.search_path = environment.contains("PATH") ? environment.at("PATH") : "";
    request.variables = variables;
    visit.requests.push_back(std::move(request));
  }
  return visit;
}

// Unreachable hosts become a finding; this host is checked anyway.
void AddThisHostAlone(const Visit& visit, const std::string& why, DoctorReport* report) {
  report->hosts.push_back({hosts::HostName(), preflight::RunPreflight(visit.requests.front()).checks});
  report->between.push_back(
      {"cluster", Level::kProblem, why, "the job would end the same way; fix this first, then check again"});
}

// Whether a host has GPUs visible to ranks, or the config requests a backend for device memory.
bool MayUseDevices(const Visit& visit, const preflight::AnswersByHost& by_host) {
  if (!visit.wish.falls_back && std::ranges::any_of(visit.wish.candidates, [](const auto& one) {
        return one.expected && !one.unnamed;
      }))
    return true;
  return std::ranges::any_of(by_host, [](const auto& one) {
    return std::ranges::any_of(one.second.checks, [](const preflight::Check& check) {
      return check.topic == "gpus" && check.what != "none";
    });
  });
}

// Which backend would carry which memory.
void AddRoutes(const Visit& visit, const preflight::AnswersByHost& by_host, DoctorReport* report) {
  if (by_host.empty() || visit.wish.candidates.front().name == "none" || !MayUseDevices(visit, by_host))
    return;
  const auto routes = preflight::ChooseRoutes(visit.wish, by_host);
  if (!routes) return;  // the backends' own lines report it
  const std::string& host = visit.wish.candidates[routes->host].name;
  const std::string why = routes->no_device.empty() ? host + " moves host memory" : routes->no_device;
  std::string device = "none: backend.staging is \"off\" and " + why;
  if (routes->device) {
    device = visit.wish.candidates[*routes->device].name;
  } else if (visit.stages) {
    device = fmt::format("staging over {}, because {}", host, why);
  }
  report->between.push_back(
      {"routes", Level::kOk, fmt::format("host memory: {}; device memory: {}", host, device), ""});
}

Result<DoctorReport> Look(const Visit& visit, process::Lifeline& lifeline) {
  membership::Answers answers;
  if (visit.cluster) {
    const membership::Inquiry inquiry{visit.job, visit.hosts, visit.requests, visit.network_rules};
    auto told = membership::AskHosts(*visit.cluster, inquiry, lifeline,
                                     [](const std::string& line) { PrintMessage("{}\n", line); });
    if (!told) return told.error();
    answers = *std::move(told);
  } else {
    answers.hosts = {0};
    answers.by_host.push_back(preflight::RunPreflight(visit.requests.front()));
  }
  DoctorReport report;
  report.network = std::move(answers.network);
  preflight::AnswersByHost by_host;
  for (std::size_t i = 0; i < answers.by_host.size(); ++i) {
    const std::string& name = visit.hosts[answers.hosts[i]];
    report.hosts.push_back({name, answers.by_host[i].checks});
    by_host.emplace_back(name, std::move(answers.by_host[i]));
  }
  report.between = preflight::Compare(by_host, answers.asked_seconds);
  AddRoutes(visit, by_host, &report);
  std::ranges::copy(visit.unknown, std::back_inserter(report.between));
  if (!visit.platform.empty())
    report.between.push_back(
        {"cluster", Level::kOk, fmt::format("the hosts are those of {}", visit.platform), ""});
  if (!visit.refusal.empty()) report.between.push_back({"config", Level::kProblem, visit.refusal, kSameEnd});
  for (const auto& [host, why] : answers.missing) {
    report.between.push_back(
        {"cluster", Level::kProblem,
         fmt::format("host {} has not joined{}{}", host, why.empty() ? "" : ": ", why),
         "the job would wait for it until cluster.join_timeout; fix this, then check again (--timeout "
         "waits longer for a slow host)"});
  }
  if (!answers.lost.empty()) AddThisHostAlone(visit, answers.lost, &report);
  if (report.network) std::ranges::move(CheckNetwork(*report.network), std::back_inserter(report.between));
  // A single machine needs no network, but explicit user settings are still checked.
  if (!report.network && !visit.network_rules.empty() && visit.refusal.empty()) {
    if (Status here = membership::CheckNamesHere(visit.network_rules[0]); !here)
      report.between.push_back({"network", Level::kProblem, here.error().text, kSameEnd});
  }
  return report;
}

int Print(const DoctorReport& report, bool json) {
  if (json) {
    WriteOutput(JsonDocument(1, ToJson(report)));
  } else {
    WriteForReading(ToText(report));
  }
  return Worst(report) == Level::kProblem ? kProblems : 0;
}

int Doctor(const DoctorArguments& arguments, ConfigArguments config) {
  const Result<Nanoseconds> timeout = ReadTimeout(arguments.timeout);
  if (!timeout) return Complain(timeout.error());
  // Without a command, or without any config, this host can still be checked.
  if (config.command.empty()) config.base.push_back({"job.command", std::vector<std::string>{"true"}, {}});
  auto preparation = LoadOrExplain(config);
  if (!preparation) return kUserError;
  // With "manual" every host runs this command, and host 0 reports.
  const auto lead = [&](launch::Preparation& own) -> Result<launch::Work> {
    auto visit = Plan(config, own, *timeout);
    if (!visit) return visit.error();
    return launch::Work([&arguments, visit = *std::move(visit)](process::Lifeline& lifeline) {
      auto report = Look(visit, lifeline);
      if (report) return Print(*report, arguments.json);
      DoctorReport alone;
      AddThisHostAlone(visit, report.error().text, &alone);
      return Print(alone, arguments.json);
    });
  };
  const Result<int> code = launch::LeadOrJoin(*std::move(preparation), {}, lead);
  return code ? *code : Complain(code.error());
}

}  // namespace

void AddDoctor(CLI::App& app, ConfigArguments* job, Verbs* to) {
  const auto own = std::make_shared<DoctorArguments>();
  CLI::App* doctor = app.add_subcommand("doctor", "Check all hosts before launch");
  doctor->add_flag("--json", own->json, "Machine-readable");
  doctor
      ->add_option("--timeout", own->timeout,
                   "How long to wait for hosts to join, at most the job's own limit (20s)")
      ->type_name("DURATION");
  doctor->footer(
      "Checks names, ports, network, limits, processors, BLAS, GPUs, RDMA and every backend on each host of "
      "the job, or on this machine without a config or --hosts. Each warning suggests a fix.\n"
      "Exit code: 0; 1 with problems; 2 when the command line or the config cannot be read.");
  AddJobFlags(doctor, job);
  to->push_back({doctor, [own, job] { return Doctor(*own, *job); }});
}

}  // namespace dtrun::cli
