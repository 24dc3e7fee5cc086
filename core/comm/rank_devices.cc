#include "core/comm/rank_devices.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/error_id.h"
#include "core/comm/plugin_fault.h"
#include "core/contract/environment.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin_code.h"
#include "core/plugin/search_path.h"
#include "dtrun/plugin/failure.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {

Result<StartedPlugin> StartPlugin(plugin::Kind kind, const PluginSetting& setting, const char* options_name,
                                  dtrun_options& options, Nanoseconds limit, const PluginReport& report) {
  const std::string who = fmt::format("{} '{}'", plugin::KindText(kind), setting.name);
  // The file found for the job, by its real path; the name may have been that of a link to it.
  plugin::File file;
  file.kind = kind;
  file.name = plugin::FileForm(setting.name);
  file.path = setting.path;
  file.origin = "its path";
  if (!setting.options.empty()) {
    Result<dtrun_options> read = options::FromJson(setting.options);
    if (!read) return Error{read.error().code, fmt::format("{}: {}", options_name, read.error().text)};
    options = *std::move(read);
  }
  file.id = plugin::RequireStack(setting.file_id, &options);
  StartedPlugin started;
  WatchForFaults();
  {
    const std::string loading = fmt::format("{}, {}", who, plugin::kBeingLoaded);
    PluginCall entry(loading, limit, report, {}, PluginCall::DueOf(limit));
    Result<const plugin::Plugin*> loaded = Error{DTRUN_INTERNAL, {}};
    try {
      loaded = plugin::Load(file);
    } catch (...) {  // out of a constructor
      return Threw(loading, report);
    }
    if (!loaded && report && loaded.error().id == ErrorId::kPluginReplaced) report(loaded.error());
    if (!loaded) return std::move(loaded).error();
    started.plugin = *loaded;
  }
  PluginError error;
  const std::string member = who + ", in its init";
  const PluginCall call(member, limit, report, {}, PluginCall::DueOf(limit));
  dtrun_status status = DTRUN_OK;
  try {
    status = sdk::InitPlugin(started.plugin->table(), &started.plugin->host(), &options, &started.instance,
                             &error);
  } catch (...) {
    return Threw(member, report);
  }
  WatchForFaults();
  if (status == DTRUN_OK) return started;
  Error failed = Explained(status, error, fmt::format("starting {}", who));
  NoteMissingText(who, error, failed);
  if (status == DTRUN_INTERNAL) BlameFor(failed, who);
  if (report && failed.id == ErrorId::kPluginFault) report(failed);
  return failed;
}

RankDevices::~RankDevices() {
  if (stuck_) return;
  if (device_backend_.instance != nullptr) {
    const std::string& name = environment_.device_backend.name;
    const PluginCall call(fmt::format("backend '{}', in its shutdown", name), limit_, report_);
    Guard(name, "in its shutdown", report_,
          [&] { device_backend_.plugin->table().shutdown(device_backend_.instance); });
  }
  for (const auto& [path, started] : plugins_) started.plugin->table().shutdown(started.instance);
}

Result<const Device*> RankDevices::Plugin(std::int32_t kind) {
  const std::lock_guard lock(mutex_);
  return PluginLocked(kind);
}

Result<const Device*> RankDevices::PluginLocked(std::int32_t kind) {
  if (const auto known = devices_.find(kind); known != devices_.end()) return &known->second;
  Result<std::vector<PluginSetting>> candidates = Candidates(kind);
  if (!candidates) return std::move(candidates).error();
  for (const PluginSetting& setting : *candidates) {
    Result<const Device*> started = Start(setting);
    if (!started) return started;
    if ((*started)->table->kind == kind) return started;
  }
  return Error{
      DTRUN_NOT_FOUND,
      fmt::format("no device plugin of this job is for {}; install libdtrun_device_{}.so beside the other "
                  "plugins, or name its folder in plugins.path",
                  sdk::DeviceKindText(kind),
                  kind < DTRUN_DEVICE_OTHER ? sdk::DeviceKindText(kind) : "<name>")};
}

Result<std::vector<PluginSetting>> RankDevices::Candidates(std::int32_t kind) const {
  const auto fits = [kind](const std::string& name) {
    return kind < DTRUN_DEVICE_OTHER ? name == sdk::DeviceKindText(kind) : true;
  };
  std::vector<PluginSetting> found;
  for (const PluginSetting& setting : environment_.devices) {
    if (fits(setting.name)) found.push_back(setting);
  }
  if (environment_.launched) return found;
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath({}, {}))) {
    if (file.kind != plugin::Kind::kDevice || !fits(file.name)) continue;
    Result<plugin::File> checked = plugin::Find(plugin::Kind::kDevice, file.name, plugin::SearchPath({}, {}));
    if (!checked) return std::move(checked).error();
    found.push_back({checked->name, checked->path.string(), {}, {}});
  }
  return found;
}

Result<const Device*> RankDevices::Start(const PluginSetting& setting) {
  auto at = plugins_.find(setting.path);
  if (at == plugins_.end()) {
    Result<StartedPlugin> started =
        StartPlugin(plugin::Kind::kDevice, setting, contract::kDevices, none_, limit_, report_);
    if (!started) return std::move(started).error();
    at = plugins_.emplace(setting.path, *started).first;
  }
  const dtrun_device& table = at->second.plugin->device();
  NameKind(table.kind, setting.name);
  return &devices_.try_emplace(table.kind, Device{&table, at->second.instance, setting.name}).first->second;
}

Result<Carrier> RankDevices::DeviceBackend() {
  const PluginSetting& setting = environment_.device_backend;
  if (device_backend_.plugin == nullptr) {
    Result<StartedPlugin> started = StartPlugin(
        plugin::Kind::kBackend, setting, contract::kDeviceBackendOptions, backend_options_, limit_, report_);
    if (!started) return std::move(started).error();
    device_backend_ = *started;
  }
  return Carrier{device_backend_.plugin->backend(),
                 device_backend_.instance,
                 setting.name,
                 false,
                 {&device_backend_.plugin->table()}};
}

Result<Carrier> RankDevices::StagingOver(const Carrier& wire, std::int32_t kind, std::string name) {
  std::unique_ptr<Staging>& staging = staging_[kind];
  if (staging == nullptr) {
    Result<const Device*> device = PluginLocked(kind);
    if (!device) return std::move(device).error();
    std::int32_t count = 0;  // a plugin without a device carries nothing
    PluginError error;
    const dtrun_status counted = (*device)->table->count((*device)->instance, &count, &error);
    if (counted != DTRUN_OK) return Explained(counted, error, fmt::format("device '{}'", (*device)->name));
    staging =
        std::make_unique<Staging>(Staging{**device, wire, plugin::HostTable(plugin::Kind::kBackend, false)});
  }
  return Carrier{StagingBackend(), AsInstance(staging.get()), std::move(name), true};
}

Result<Carrier> RankDevices::CarrierOf(std::int32_t kind) {
  const std::lock_guard lock(mutex_);
  Carrier own;
  if (!environment_.device_backend.name.empty()) {
    Result<Carrier> started = DeviceBackend();
    if (!started) return started;
    own = *std::move(started);
  }
  for (const Carrier* carrier : {static_cast<const Carrier*>(&own), &backend_}) {
    if (carrier->table.query_caps == nullptr) continue;
    Result<dtrun_backend_caps> caps = CapsOf(*carrier, limit_, report_);
    if (!caps) return std::move(caps).error();
    if ((caps->device_kinds >> kind & 1) == 0) continue;
    if ((caps->features & DTRUN_CAP_NO_STREAM) == 0) return *carrier;
    return StagingOver(*carrier, kind, carrier->name);  // orders its operations with streams
  }
  if (environment_.staging) return StagingOver(host_, kind, "staging over " + host_.name);
  return Error{
      DTRUN_UNSUPPORTED,
      fmt::format("no backend of this job moves memory of {}, and backend.staging is \"off\"; set it to "
                  "\"auto\", or name a backend such as \"nccl\"",
                  KindName(kind))};
}

}  // namespace dtrun::comm
