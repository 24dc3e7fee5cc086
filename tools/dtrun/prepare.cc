#include "tools/dtrun/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace dtrun::cli {
namespace {

// Every option with its value and origin: config.json of the run record.
std::string RecordOf(const config::Settings& settings) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const option::Spec& spec : settings.schema()) {
    const option::Value& value = settings.Get(spec.key);
    if (!value.set()) continue;
    out[spec.key] = {{"value", spec.secret ? "(secret)" : option::Format(spec, value.data)},
                     {"origin", value.origin.place.empty() ? "default" : value.origin.place}};
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

Result<std::string> DtrunOnHosts(const config::Settings& settings) {
  if (settings.Has("cluster.dtrun")) return settings.Text("cluster.dtrun");
  std::error_code failure;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return Error::System("find the path of dtrun", failure.value());
  return own.string();
}

Preparation Preparation::Load(const ConfigArguments& arguments) {
  Preparation self;
  self.arguments_ = arguments;
  config::Request request;
  request.file = arguments.file;
  request.sets = arguments.sets;
  if (!arguments.host_index.empty()) request.sets.push_back("cluster.host_index=" + arguments.host_index);
  request.environment = Environment();
  request.command = arguments.command;
  request.base = arguments.base;
  request.given = arguments.given;
  self.loaded_ = config::Load(
      request, [&self](std::string_view kind, const std::string& name, const config::Settings& so_far) {
        return self.SchemaOf(kind, name, so_far);
      });
  return self;
}

Result<option::Schema> Preparation::SchemaOf(std::string_view kind, const std::string& name,
                                             const config::Settings& so_far) {
  const bool backend = kind == "backend";
  const std::vector<std::string> none;
  const auto folders = plugin::SearchPath(arguments_.plugin_dirs,
                                          so_far.Has("plugins.path") ? so_far.List("plugins.path") : none);
  const std::string path_key = fmt::format("{}.path", kind);
  auto file = plugin::Find(backend ? plugin::Kind::kBackend : plugin::Kind::kLauncher,
                           so_far.Has(path_key) ? so_far.Text(path_key) : name, folders);
  if (!file) return file.error();
  if (backend) {
    auto probe = plugin::Probe::Start(*file);
    if (!probe) return probe.error();
    backend_ = std::move(*probe);
    return backend_->description().options;
  }
  auto loaded = plugin::Load(*file);
  if (!loaded) return loaded.error();
  launcher_ = *loaded;
  return launcher_->schema();
}

Status Preparation::AskBackend(const std::vector<plan::Hardware>& reported) {
  const config::Settings& settings = loaded_.settings;
  answer_.name = settings.Text("backend.name");
  if (backend_ == nullptr) return {};
  const dtrun_options options = settings.SnapshotOf("backend.options.");
  auto hosts = plan::PlaceRanks(settings, *hardware_, reported);
  if (!hosts) return hosts.error();
  auto info = backend_->Launch(options, static_cast<int>(hosts->size()), hosts->front().local_size);
  if (!info) return info.error();
  answer_.path = backend_->description().file.path.string();
  answer_.options_json = option::ToJson(options);
  answer_.info = std::move(*info);
  backend_.reset();
  return {};
}

Result<plan::Plan> Preparation::MakePlan(const std::vector<plan::HostOffer>& offers,
                                         const net::Decision* network) {
  auto environment = Environment();
  environment.erase(kClusterKey);
  if (!hardware_) {
    auto hardware = plan::ReadHardware(loaded_.settings, environment);
    if (!hardware) return hardware.error();
    hardware_ = std::move(*hardware);
  }
  std::vector<plan::Hardware> reported;
  for (const plan::HostOffer& offer : offers) {
    reported.push_back(plan::HardwareOf(loaded_.settings, environment, offer));
  }
  if (answer_.name.empty()) {
    if (Status asked = AskBackend(reported); !asked) return asked.error();
  }
  std::error_code failure;
  const std::filesystem::path cwd = std::filesystem::current_path(failure);
  if (failure) return Error::System("find the working directory", failure.value());
  auto program = DtrunOnHosts(loaded_.settings);
  if (!program) return program.error();
  auto plan = plan::Build({loaded_.settings, *launcher_, answer_, *hardware_, std::move(environment),
                           cwd.string(), *std::move(program), std::move(reported), network});
  if (plan.ok()) plan->record["config.json"] = RecordOf(loaded_.settings);
  return plan;
}

}  // namespace dtrun::cli
