#include "core/launch/preparation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/json.h"
#include "core/base/printable.h"
#include "core/failures/table.h"
#include "core/hosts/this_machine.h"
#include "core/launch/interface_notes.h"
#include "core/launch/launchers.h"
#include "core/launch/policies.h"
#include "core/plan/at.h"
#include "core/plan/pmi.h"
#include "core/plugin/permissions.h"
#include "core/plugin/search_path.h"

namespace dtrun::launch {
namespace {

constexpr std::string_view kOwnOptions = "backend.options.";

void Record(const options::Spec& spec, const options::Value& value, const std::string& key, Json* out) {
  if (!value.set()) return;
  (*out)[key] = {{"value", options::Format(spec, value.data)},
                 {"origin", value.origin.place.empty() ? "default" : value.origin.place}};
}

// Every option with its value and origin: config.json of the run record.
Json RecordOf(const config::Settings& settings) {
  Json out = Json::object();
  for (const options::Spec& spec : settings.schema()) Record(spec, settings.Get(spec.key), spec.key, &out);
  return out;
}

// Records the options of one of two backends under its name.
void RecordOptions(const config::Settings& settings, const std::string& backend, Json* out) {
  for (const options::Spec& spec : settings.schema()) {
    if (!spec.key.starts_with(kOwnOptions)) continue;
    Record(spec, settings.Get(spec.key),
           fmt::format("backend.{}.{}", backend, spec.key.substr(kOwnOptions.size())), out);
  }
}

}  // namespace

Result<std::string> DtrunOnHosts(const config::Settings& settings) {
  if (settings.Has("cluster.dtrun")) return settings.Text("cluster.dtrun");
  std::error_code failure;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return Error::System("find the path of dtrun", failure.value());
  return own.string();
}

Result<config::Settings> DefaultsOf(const plugin::File& backend, std::vector<std::string> plugin_dirs) {
  config::Request request;
  request.sets = {"backend.path=" + backend.path.string(), "backend.name=" + backend.name};
  request.command = {"true"};
  const Preparation preparation = Preparation::Load(std::move(request), std::move(plugin_dirs));
  if (preparation.problems().empty()) return preparation.settings();
  return Error{DTRUN_FAILED_PRECONDITION, preparation.problems().front().message};
}

Preparation Preparation::Load(config::Request request, std::vector<std::string> plugin_dirs) {
  Preparation self;
  self.plugin_dirs_ = std::move(plugin_dirs);
  request.environment = Environment();
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath(self.plugin_dirs_, {}))) {
    if (file.kind == plugin::Kind::kBackend) request.backends.push_back(file.name);
    if (file.kind == plugin::Kind::kDevice) request.devices.push_back(file.name);
    if (file.kind == plugin::Kind::kLauncher) request.launcher_names.push_back(plugin::TypedForm(file.name));
  }
  self.request_ = std::move(request);
  self.loaded_ = self.ReadConfig();
  for (const Error& wrong : WrongValues(self.loaded_.settings))
    self.loaded_.problems.push_back({"", Printable(wrong.text), ""});
  if (self.loaded_.problems.empty() && self.settings().Has("failures.path")) {
    const std::vector<std::string>& own = self.settings().List("failures.path");
    const std::vector<std::filesystem::path> files(own.begin(), own.end());
    const failures::Table table(files);
    for (const std::string& wrong : table.problems())
      self.loaded_.problems.push_back({"", Printable(wrong), ""});
    failures::UseFiles(files);
  }
  self.choice_ = config::BackendChoiceOf(self.loaded_.settings);
  const std::vector<std::string>& names = self.choice_.names;
  if (names.empty()) return self;  // reported as one of the problems
  self.AddCandidate(self.loaded_.settings, names.front());
  for (std::size_t i = 1; i < names.size(); ++i) {
    self.request_.backend = names[i];
    config::Loaded loaded = self.ReadConfig();
    self.AddProblems(std::move(loaded.problems));
    self.AddCandidate(std::move(loaded.settings), names[i]);
  }
  return self;
}

// Every reading finds the problems of the whole config, so add only new ones.
void Preparation::AddProblems(std::vector<config::Problem> found) {
  std::set<std::pair<std::string, std::string>> known;
  for (const config::Problem& one : loaded_.problems) known.emplace(one.place, one.message);
  for (config::Problem& one : found) {
    if (known.emplace(one.place, one.message).second) loaded_.problems.push_back(std::move(one));
  }
}

config::Loaded Preparation::ReadConfig() {
  const auto schema_of = [this](std::string_view kind, const std::string& name,
                                const config::Settings& so_far) { return SchemaOf(kind, name, so_far); };
  request_.launchers = [this](const config::Settings& so_far) { return LaunchersFor(so_far); };
  config::Loaded loaded = config::Load(request_, schema_of);
  request_.launchers = {};
  if (launchers_ != nullptr) launchers_->EndProbes();
  return loaded;
}

std::vector<plugin::Folder> Preparation::FoldersOf(const config::Settings& so_far) const {
  return plugin::SearchPath(
      plugin_dirs_, so_far.Has("plugins.path") ? so_far.List("plugins.path") : std::vector<std::string>());
}

// Reads the config again for each queried launcher that launcher.name does not name.
void Preparation::SetOptions(const config::Settings& so_far, LauncherPlugins* launchers) const {
  config::Request request = request_;
  request.launchers = {};
  launchers->SetOptions(
      launcher_file_.path, so_far.SnapshotOf("launcher.options."),
      [request](const plugin::Description& launcher) mutable -> Result<dtrun_options> {
        request.launcher = plugin::TypedForm(launcher.file.name);
        const config::Loaded own =
            config::Load(request, [&](std::string_view, const std::string&, const config::Settings&) {
              return Result<options::Schema>(launcher.options);
            });
        if (own.problems.empty()) return own.settings.SnapshotOf("launcher.options.");
        const config::Problem& first = own.problems.front();
        return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{}: {}{}", first.place, first.message,
                                                         first.hint.empty() ? "" : "; " + first.hint)};
      });
}

std::shared_ptr<LauncherPlugins> Preparation::LaunchersFor(const config::Settings& so_far) {
  std::vector<plugin::Folder> folders = FoldersOf(so_far);
  if (launchers_ == nullptr ||
      !std::ranges::equal(folders, launchers_->folders(), {}, &plugin::Folder::path, &plugin::Folder::path)) {
    launchers_ = std::make_shared<LauncherPlugins>(std::move(folders));
  }
  SetOptions(so_far, launchers_.get());
  return launchers_;
}

std::shared_ptr<hosts::Launchers> Preparation::launchers() const {
  if (launchers_ != nullptr) return launchers_;
  auto launchers = std::make_shared<LauncherPlugins>(FoldersOf(settings()));
  SetOptions(settings(), launchers.get());
  return launchers;
}

void Preparation::AddCandidate(config::Settings settings, std::string name) {
  std::optional<plugin::File> file;
  if (probe_ != nullptr) file = probe_->description().file;
  candidates_.push_back({std::move(name),
                         std::move(settings),
                         std::move(file),
                         std::exchange(probe_, nullptr),
                         std::exchange(probe_failure_, {}),
                         {}});
}

// The backend that is probably queried next: its plugin loads while the launcher's does.
std::unique_ptr<plugin::Probe> Preparation::BeginBackend(const config::Settings& so_far,
                                                         const std::vector<plugin::Folder>& folders) {
  const std::string name =
      so_far.Has("backend.path") ? so_far.Text("backend.path") : config::BackendNames(so_far).front();
  if (name == "none") return nullptr;
  auto file = plugin::Find(plugin::Kind::kBackend, name, folders);
  if (!file) return nullptr;  // the later query reports the error
  file->id = PinOf(so_far, "backend", file->path);
  auto probe = plugin::Probe::Begin(*file);
  return probe ? *std::move(probe) : nullptr;
}

Result<std::unique_ptr<plugin::Probe>> Preparation::Described(const plugin::File& backend) {
  std::unique_ptr<plugin::Probe> early = std::exchange(early_, nullptr);
  if (early == nullptr || early->file().path != backend.path || early->file().id != backend.id)
    return plugin::Probe::Start(backend);
  if (Status described = early->Describe(); !described) return std::move(described).error();
  return early;
}

Result<options::Schema> Preparation::SchemaOf(std::string_view kind, const std::string& name,
                                              const config::Settings& so_far) {
  const bool backend = kind == "backend";
  const auto folders = FoldersOf(so_far);
  const std::string path_key = fmt::format("{}.path", kind);
  // A backend that the config does not name uses its own file.
  const std::vector<std::string> named = backend ? config::BackendNames(so_far) : std::vector{name};
  const bool by_path = so_far.Has(path_key) && std::ranges::find(named, name) != named.end();
  auto file = plugin::Find(backend ? plugin::Kind::kBackend : plugin::Kind::kLauncher,
                           by_path ? so_far.Text(path_key) : name, folders);
  if (file) file->id = PinOf(so_far, kind, file->path);
  if (!backend) {
    if (!file) return file.error();
    // Usually the same for every candidate.
    if (launcher_ == nullptr || launcher_file_.path != file->path || launcher_file_.id != file->id) {
      early_ = BeginBackend(so_far, folders);  // usually takes longer to load
      auto launcher = plugin::Probe::Begin(*file);
      if (!launcher) return launcher.error();
      if (!here_) here_ = plan::OfferHere();
      if (Status described = (*launcher)->Describe(); !described) return std::move(described).error();
      launcher_ = *std::move(launcher);
      launcher_file_ = *std::move(file);
    }
    const std::vector<std::string>& members = launcher_->description().members;
    if (std::ranges::find(members, "plan") == members.end()) {
      return Error{DTRUN_UNSUPPORTED,
                   fmt::format("launcher '{}' plans no processes, it has {}; choose another launcher.name",
                               name, fmt::join(members, ", "))};
    }
    return launcher_->description().options;
  }
  auto probe = file ? Described(*file) : file.error();
  if (!probe) {
    probe_failure_ = probe.error().text;
    return probe.error();
  }
  probe_ = *std::move(probe);
  return probe_->description().options;
}

void Preparation::End(std::unique_ptr<plugin::Probe> probe) {
  if (probe == nullptr) return;
  probe->BeginEnd();
  ending_.push_back(std::move(probe));
}

Status Preparation::ReadHardware() {
  if (hardware_) return {};
  if (!here_) here_ = plan::OfferHere();
  if (!*here_) return here_->error();
  hardware_ = plan::HardwareHere(loaded_.settings, RankEnvironment(), **here_);
  return {};
}

std::vector<plan::Hardware> Preparation::HardwareOf(const std::vector<plan::HostOffer>& offers) const {
  const auto environment = RankEnvironment();
  std::vector<plan::Hardware> reported;
  for (const plan::HostOffer& offer : offers) {
    reported.push_back(plan::HardwareOf(loaded_.settings, environment, offer));
  }
  return reported;
}

Result<plan::Plan> Preparation::MakePlan() {
  if (Status read = ReadHardware(); !read) return read.error();
  const auto chosen = ChooseHere();
  if (!chosen) return chosen.error();
  // A later plan may be made in another process, which queries again.
  for (Candidate& candidate : candidates_) End(std::move(candidate.probe));
  auto plan = Build(*chosen, {}, nullptr);
  if (!plan) return plan;
  if (Status modules = CheckModulesHere(); !modules) return modules.error();
  return plan;
}

Result<plan::Plan> Preparation::PlanOfRun() {
  return plan::HasCluster(loaded_.settings) ? PlanFor({}, {}, nullptr) : MakePlan();
}

Result<plan::Plan> Preparation::PlanFor(const std::vector<plan::HostOffer>& offers,
                                        const std::vector<preflight::Answer>& answers,
                                        const network::Decision* network) {
  auto plan = PlanByAnswers(offers, answers, network);
  AwaitProbes();
  return plan;
}

Result<plan::Plan> Preparation::PlanByAnswers(const std::vector<plan::HostOffer>& offers,
                                              const std::vector<preflight::Answer>& answers,
                                              const network::Decision* network) {
  if (Status read = ReadHardware(); !read) return read.error();
  for (Candidate& candidate : candidates_) End(std::move(candidate.probe));
  std::vector<plan::Hardware> reported = HardwareOf(offers);
  if (answers.empty()) {
    if (Status added = MayNeedUnnamed() ? AddUnnamed() : Status(); !added) return added.error();
    Candidate& draft = candidates_.front();
    draft.answer = AnswerOf(draft);
    return Build({.asked = false}, std::move(reported), network);
  }
  const auto chosen = ChooseByAll(reported, answers);
  if (!chosen) return chosen.error();
  return Build(*chosen, std::move(reported), network);
}

Status Preparation::Check() {
  if (Status read = ReadHardware(); !read) return read;
  if (Status added = MayNeedUnnamed() ? AddUnnamed() : Status(); !added) return added;
  Candidate& draft = candidates_.front();
  draft.answer = AnswerOf(draft);
  const auto plan = Build({.asked = false}, {}, nullptr, false);
  draft.answer.reset();
  return plan ? Status() : plan.error();
}

Result<plan::Plan> Preparation::Build(const Chosen& chosen, std::vector<plan::Hardware> reported,
                                      const network::Decision* network, bool find_programs) {
  std::error_code failure;
  const std::filesystem::path cwd = std::filesystem::current_path(failure);
  if (failure)
    return Error::System("the folder that dtrun was started in is gone; cd to another one", failure.value());
  auto program = DtrunOnHosts(loaded_.settings);
  if (!program) return program.error();
  const Candidate& host = candidates_[chosen.host];
  // Beside a single named backend, backend.options belong to that one.
  const bool unnamed = chosen.host >= choice_.names.size();
  const config::Settings& settings = unnamed ? loaded_.settings : host.settings;
  plan::Backend backend = *host.answer;
  if (choice_.falls_back()) {
    const std::string why = passed_over_.empty() ? "the first of backend.name" : "because " + passed_over_;
    if (backend.info.empty()) backend.info.emplace_back();
    for (plugin::LaunchInfo& info : backend.info) info.facts.emplace_back("chosen", why);
  }
  plan::DeviceMemory device = DeviceMemoryOf(chosen, reported.size());
  std::vector<std::filesystem::path> plugins = {launcher_file_.path};
  if (host.file) plugins.push_back(host.file->path);
  if (chosen.device && candidates_[*chosen.device].file)
    plugins.push_back(candidates_[*chosen.device].file->path);
  for (const auto& one : device.plugins) plugins.emplace_back(one.path);
  // Use the probe once: a later plan may be made in another process, which queries again.
  auto launcher = launcher_ == nullptr ? plugin::Probe::Start(launcher_file_) : std::move(launcher_);
  if (!launcher) return launcher.error();
  auto plan =
      plan::Build({settings, **launcher, std::move(backend), *hardware_, RankEnvironment(), cwd.string(),
                   *std::move(program), std::move(reported), network, find_programs, std::move(device)});
  End(*std::move(launcher));
  if (!plan) return plan;
  if (plan->hosts.size() == 1 && !plan::HasCluster(settings)) {
    if (Status here = CheckInterface(settings); !here) return here.error();
    AddInterfaceNotes(settings, &*plan);
  }
  plan->warnings.insert(plan->warnings.end(), warnings_.begin(), warnings_.end());
  for (const preflight::Check& unknown : UnknownBackends())
    plan->warnings.push_back(fmt::format("{}; {}", unknown.what, unknown.fix));
  if (std::string writable = plugin::GroupWarning(plugins); !writable.empty())
    plan->warnings.push_back(std::move(writable));
  for (std::string& missing : plugin::MissingFolders(FoldersOf(settings)))
    plan->warnings.push_back(std::move(missing));
  Json record = RecordOf(settings);
  if (chosen.device && *chosen.device != chosen.host) {
    const Candidate& moves_devices = candidates_[*chosen.device];
    RecordOptions(host.settings, host.name, &record);
    RecordOptions(moves_devices.settings, moves_devices.name, &record);
  }
  plan->record["config.json"] = JsonText(record);
  program_ = plan->processes.front().argv.front();
  return plan;
}

Result<std::vector<preflight::Request>> Preparation::PreflightRequests(
    const std::vector<plan::HostOffer>& offers) const {
  auto hosts = plan::PlaceRanks(loaded_.settings, *hardware_, HardwareOf(offers));
  if (!hosts) return hosts.error();
  int world_size = 0;
  for (const plan::Host& host : *hosts) world_size += host.local_size;
  preflight::Request request;
  request.host_count = static_cast<int>(hosts->size());
  request.backends = BackendRequests(request.host_count, world_size);
  const bool idle = std::ranges::all_of(
      request.backends, [](const auto& backend) { return backend.name == "none" && !backend.pmix; });
  std::vector<preflight::Request> requests;
  auto modules = ModulesToAsk();
  if (!modules) return modules.error();
  request.modules = *std::move(modules);
  if (idle && request.modules.names.empty()) return requests;
  for (const plan::Host& host : *hosts) {
    request.local_ranks = host.local_size;
    requests.push_back(request);
  }
  return requests;
}

}  // namespace dtrun::launch
