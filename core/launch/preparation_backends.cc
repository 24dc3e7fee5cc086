// Decides which backend in the config moves which memory, by queries on this host or by the answers of the
// job's hosts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/hosts/this_machine.h"
#include "core/launch/cluster.h"
#include "core/launch/modules.h"
#include "core/launch/preparation.h"
#include "core/options/snapshot.h"
#include "core/plan/at.h"
#include "core/plan/pmi.h"
#include "core/plugin/elf.h"
#include "core/plugin/plugin_file.h"
#include "core/preflight/gpu_access.h"

namespace dtrun::launch {
namespace {

bool ExpectsDevices(const spec::BackendChoice& choice) {
  return !choice.device.empty() ||
         (!choice.automatic && std::ranges::any_of(choice.names, spec::IsDeviceBackend));
}

// Puts the place of backend.name before an error about its names.
Error AtName(const spec::JobSpec& spec, const Error& error) {
  return spec.backend.name.place().empty() ? error : plan::At(spec.backend.name, error);
}

// The id required on `hosts` hosts; a file without a build id has an id that is valid on one host only.
std::string IdOf(const plugin::File& file, std::size_t hosts) {
  if (!file.id.empty() || hosts > 1) return file.id;
  const auto opened = plugin::OpenedFile::Open(file.path);
  if (!opened) return {};
  const auto elf = plugin::ReadElf(*opened);
  if (!elf) return {};
  auto id = plugin::FileId(*opened, elf->build_id, "");
  return id ? *std::move(id) : std::string();
}

// Whether the existing file matches its pin.
bool IsPinned(const plugin::File& file) {
  const auto opened = plugin::OpenedFile::Open(file.path);
  if (!opened) return false;
  const auto id = plugin::FileId(*opened, "", file.id);
  return id && *id == file.id;
}

}  // namespace

// The files of the backends that this one stands on, which were found when their options were read.
Status Preparation::FindWrapped(spec::PluginOptions* wrapper) const {
  for (spec::PluginOptions& one : wrapper->wrapped) {
    const auto& named = wrapper->values.at(one.named_by).data;
    const auto file = FileOf(plugin::Kind::kBackend, std::get<std::string>(named), false, spec());
    if (!file) return file.error();
    one.path = file->path.string();
    one.file_id = file->id;
    if (Status below = FindWrapped(&one); !below) return below;
  }
  return {};
}

// Whether the backends in the config may move device memory only, as far as is known before hosts are
// queried.
bool Preparation::MayNeedUnnamed() {
  if (!choice_.host.empty() || choice_.automatic || candidates_.size() > choice_.names.size()) return false;
  if (std::ranges::any_of(choice_.names, spec::IsDeviceBackend)) return true;
  Candidate& only = candidates_.front();
  const bool known = std::ranges::find(spec::HostBackends(), only.name) != spec::HostBackends().end();
  if (choice_.names.size() > 1 || known || only.name == "none" || !only.file) return false;
  const auto info = AskForInfo(only, {plan::Host{}});
  return !info || preflight::MovesDeviceMemoryOnly(*info);
}

// Adds host-memory backends beside a backend that moves device memory only. Skips one that cannot be loaded;
// wrong options for one that can be loaded are the user's error.
Status Preparation::AddUnnamed() {
  for (const std::string& name : spec::HostBackends()) {
    const auto same = std::ranges::find(candidates_, name, &Candidate::name);
    if (same != candidates_.end()) continue;
    joins_ = true;
    const auto schema = SchemaOfBackend(name, spec());
    Candidate& added = candidates_.back();
    if (!schema) {
      added.why_not = Printable(added.why_not);
      continue;
    }
    spec::PluginRead read = loaded_.more("backend", name, *schema);
    if (!read.problems.empty()) {
      const spec::Problem& first = read.problems.front();
      return Error{DTRUN_INVALID_ARGUMENT,
                   Printable(fmt::format("{}: {}{}", first.place, first.message,
                                         first.hint.empty() ? "" : "; " + first.hint))};
    }
    added.options = std::move(read.options);
  }
  return {};
}

std::vector<preflight::Check> Preparation::UnknownBackends() const {
  std::vector<preflight::Check> unknown;
  if (!choice_.falls_back() || choice_.automatic) return unknown;
  const std::vector<plugin::Folder> folders = FoldersOf(spec());
  for (const Candidate& one : std::span(candidates_).first(choice_.names.size())) {
    if (one.file || one.name == "none" || spec::IsOwnBackend(one.name)) continue;
    const auto found = plugin::Find(plugin::Kind::kBackend, one.name, folders);
    if (found || found.error().code != DTRUN_NOT_FOUND) continue;
    const Error what{DTRUN_NOT_FOUND, fmt::format("there is no backend plugin '{}' here", one.name)};
    unknown.push_back({"backend " + one.name, preflight::Level::kWarning,
                       Printable(AtName(spec(), what).text),
                       "correct the name, or add the plugin's folder with --plugin-dir or plugins.path"});
  }
  return unknown;
}

preflight::RouteWish Preparation::Wish() const {
  preflight::RouteWish wish;
  wish.falls_back = choice_.falls_back();
  wish.device_kind = choice_.device_kind;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    preflight::RouteCandidate one{candidates_[i].name};
    one.unnamed = i >= choice_.names.size();
    one.host = choice_.host.empty() || one.name == choice_.host;
    one.device = !one.unnamed && (choice_.device.empty() || one.name == choice_.device);
    one.expected = spec::IsDeviceBackend(one.name);
    wish.candidates.push_back(std::move(one));
  }
  return wish;
}

// The backend before any query.
plan::Backend Preparation::AnswerOf(const Candidate& candidate) {
  plan::Backend answer;
  answer.name = candidate.name;
  if (candidate.file) {
    answer.path = candidate.file->path.string();
    const dtrun_options options = candidate.options.Snapshot();
    answer.options_json = options::ToJson(options);
    answer.stack = options::StackText(candidate.name, options);
  }
  return answer;
}

// REQUIRES: it has a file.
Result<plugin::LaunchInfo> Preparation::AskForInfo(Candidate& candidate,
                                                   const std::vector<plan::Host>& hosts) {
  if (candidate.probe == nullptr) {
    auto probe = plugin::Probe::Start(*candidate.file);
    if (!probe) return probe.error();
    candidate.probe = *std::move(probe);
  }
  auto info = candidate.probe->Launch(candidate.options.Snapshot(), static_cast<int>(hosts.size()),
                                      hosts.front().local_size);
  End(std::move(candidate.probe));
  return info;
}

// Queries what the candidate would use here; an error is also stored in why_not.
Status Preparation::Ask(Candidate& candidate) {
  if (candidate.answer) return {};
  plan::Backend answer = AnswerOf(candidate);
  if (candidate.file) {
    auto hosts = plan::PlaceRanks(spec(), *hardware_, {});
    if (!hosts) return hosts.error();
    auto info = AskForInfo(candidate, *hosts);
    if (info) {
      candidate.why_not = plugin::Unusable(*info);
      if (preflight::MovesDeviceMemory(*info))
        candidate.why_not = preflight::WithGpuAccess(std::move(candidate.why_not));
      int ranks = 0;
      for (const plan::Host& host : *hosts) ranks += host.local_size;
      if (candidate.why_not.empty()) {
        candidate.why_not =
            plan::WhyNotServed(spec(), answer.shown(), static_cast<int>(hosts->size()), ranks);
      }
      std::erase_if(info->facts, [](const auto& fact) { return fact.first == "unusable"; });
      answer.info.push_back(*std::move(info));
    } else {
      candidate.why_not = info.error().text;
      const bool named = &candidate - candidates_.data() < std::ssize(choice_.names);
      const bool elsewhere = choice_.by_memory() && plan::HasCluster(spec());
      if (named && !choice_.falls_back() && !elsewhere)
        return plan::AtPlugin(candidate.options, spec().backend.name, info.error());
    }
  }
  candidate.answer = std::move(answer);
  return {};
}

// Whether to query a device-memory backend although one for host memory was found.
bool Preparation::MayUseDevices() const {
  return !hardware_->gpus.empty() || ExpectsDevices(choice_) || spec().job.processes_per_host.is("gpu");
}

// Queries candidates until each kind of memory has its backend; candidates that were not queried
// are not used.
Result<preflight::Answer> Preparation::AskHere() {
  preflight::Answer answer;
  const preflight::RouteWish before = Wish();
  bool host = false, device = false;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const bool unnamed = i >= choice_.names.size();
    if (unnamed ? host : host && (device || !MayUseDevices())) {
      answer.backends.push_back({candidates_[i].name, "was not asked"});
      continue;
    }
    Candidate& candidate = candidates_[i];
    if (Status asked = Ask(candidate); !asked) return asked.error();
    preflight::BackendAnswer& one = answer.backends.emplace_back();
    one = {candidate.name, candidate.why_not};
    if (!candidate.answer->info.empty()) one.info = candidate.answer->info.front();
    const bool expected = one.info.facts.empty() && spec::IsDeviceBackend(candidate.name);
    const bool only_device = preflight::MovesDeviceMemoryOnly(one.info) || expected;
    if (one.why_not.empty()) {
      host = host || (!only_device && (i >= before.candidates.size() || before.candidates[i].host));
      device = device || preflight::MovesDeviceMemory(one.info) || expected;
    }
    if (i + 1 == choice_.names.size() && candidates_.size() == choice_.names.size() && !host && device &&
        choice_.host.empty()) {
      if (Status added = AddUnnamed(); !added) return added.error();
    }
  }
  return answer;
}

Result<Preparation::Chosen> Preparation::ChooseHere() {
  auto answer = AskHere();
  if (!answer) return answer.error();
  auto routes = preflight::ChooseRoutes(Wish(), {{hosts::HostName(), *std::move(answer)}});
  // The hosts of the job may have what this one lacks: they are queried before anything starts.
  if (!routes && plan::HasCluster(spec())) {
    Candidate& last = candidates_[choice_.names.size() - 1];
    if (!last.answer) last.answer = AnswerOf(last);
    return Chosen{.host = choice_.names.size() - 1, .asked = false};
  }
  if (!routes) return AtName(spec(), routes.error());
  passed_over_ = fmt::format("{}", fmt::join(routes->passed_over, "; "));
  return Chosen{routes->host, routes->device, std::move(routes->no_device)};
}

Result<Preparation::Chosen> Preparation::ChooseByAll(const std::vector<plan::Hardware>& reported,
                                                     const std::vector<preflight::Answer>& answers) {
  std::vector<std::pair<std::string, preflight::Answer>> by_host;
  auto hosts = plan::PlaceRanks(spec(), *hardware_, reported);
  if (!hosts) return hosts.error();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string& host = (*hosts)[i].name;
    if (Status modules = CheckModules(spec(), program_, host, answers[i].missing_modules); !modules)
      return modules.error();
    by_host.emplace_back(host, answers[i]);
  }
  auto routes = preflight::ChooseRoutes(Wish(), by_host);
  if (!routes) return AtName(spec(), routes.error());
  passed_over_ = fmt::format("{}", fmt::join(routes->passed_over, "; "));
  const auto take = [&](std::size_t index) {
    Candidate& chosen = candidates_[index];
    chosen.answer = AnswerOf(chosen);
    chosen.why_not.clear();
    for (auto& [host, answer] : by_host) {
      chosen.answer->info.push_back(answer.backends[index].info);
    }
  };
  take(routes->host);
  if (routes->device && *routes->device != routes->host) take(*routes->device);
  return Chosen{routes->host, routes->device, std::move(routes->no_device)};
}

plan::DeviceMemory Preparation::DeviceMemoryOf(const Chosen& chosen, std::size_t hosts) const {
  plan::DeviceMemory memory;
  memory.asked = chosen.asked;
  memory.named = ExpectsDevices(choice_);
  memory.kind = choice_.device_kind;
  memory.why_not = chosen.no_device;
  memory.by_host = chosen.device == chosen.host;
  if (chosen.device && !memory.by_host) memory.backend = candidates_[*chosen.device].answer;
  const std::vector<plugin::Folder> folders = FoldersOf(spec());
  for (const plugin::File& found : plugin::FindAll(folders)) {
    if (found.kind != plugin::Kind::kDevice) continue;
    auto file = plugin::Find(found.kind, found.name, folders);
    if (!file) {
      memory.no_plugins = file.error().text;
      continue;
    }
    file->id = PinOf(spec().backend.sha256, file->path);
    if (!file->id.empty() && !IsPinned(*file)) {
      memory.no_plugins = fmt::format("backend.sha256 has no pin of the device plugin '{}'", found.name);
    } else if (file->path.string().find_first_of(":#") != std::string::npos) {
      memory.no_plugins = fmt::format("the path of the device plugin '{}' has a ':' or '#'", found.name);
    } else {
      memory.plugins.push_back({found.name, file->path.string(), IdOf(*file, hosts)});
    }
  }
  return memory;
}

std::vector<preflight::BackendRequest> Preparation::BackendRequests(int host_count, int world_size) const {
  std::vector<preflight::BackendRequest> requests;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    preflight::BackendRequest request;
    request.name = candidate.name;
    const dtrun_options options = candidate.options.Snapshot();
    const std::string stack = options::StackText(candidate.name, options);
    request.options_json = options::ToJson(options);
    request.why_not = candidate.why_not;
    request.wanted = i < choice_.names.size();
    request.needed = request.wanted && !choice_.falls_back();
    if (candidate.file) {
      request.path = candidate.file->path.string();
      request.file_id = candidate.file->id;
      request.why_not = plan::WhyNotServed(spec(), stack, host_count, world_size);
    }
    request.pmix = plan::WantedPmi(spec(), stack, host_count, world_size, program_) == pmi::Kind::kPmix;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace dtrun::launch
