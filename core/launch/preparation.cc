#include "core/launch/preparation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/environments/libraries.h"
#include "core/failures/table.h"
#include "core/hosts/this_machine.h"
#include "core/launch/cluster.h"
#include "core/launch/launchers.h"
#include "core/launch/modules.h"
#include "core/network/interface.h"
#include "core/plan/at.h"
#include "core/plan/command.h"
#include "core/plan/pmi.h"
#include "core/plugin/permissions.h"
#include "core/plugin/search_path.h"
#include "core/preflight/check/checks.h"

namespace dtrun::launch {
namespace {

void Record(const options::Spec& row, const options::Value& value, const std::string& key, Json* out) {
  if (!value.set()) return;
  (*out)[key] = {{"value", options::Format(row, value.data)},
                 {"origin", value.origin.place.empty() ? "default" : value.origin.place}};
}

// Records the options of a plugin, each key below `prefix`.
void RecordOptions(const spec::PluginOptions& options, const std::string& prefix, Json* out) {
  for (const options::Spec& row : options.schema)
    Record(row, options.values.at(row.key), prefix + row.key.substr(row.key.find('.', row.key.find('.') + 1)),
           out);
  for (const spec::PluginOptions& one : options.wrapped) RecordOptions(one, "backend." + one.name, out);
}

// The files of the backends below the one with these options.
void AddFiles(const spec::PluginOptions& wrapper, std::vector<std::filesystem::path>* files) {
  for (const spec::PluginOptions& one : wrapper.wrapped) {
    files->emplace_back(one.path);
    AddFiles(one, files);
  }
}

// Every option with its value and origin: config.json of the run record.
Json RecordOf(const spec::JobSpec& spec, const spec::PluginOptions* backend) {
  Json out = Json::object();
  for (const options::Spec& row : spec::CoreSchema()) Record(row, spec.Get(row.key), row.key, &out);
  RecordOptions(spec.launcher_options, "launcher.options", &out);
  if (backend != nullptr) RecordOptions(*backend, "backend.options", &out);
  return out;
}

// Warns of rank variables that name an interface which this host lacks; for a job on one host.
void AddInterfaceNotes(const spec::JobSpec& spec, plan::Plan* plan) {
  const plan::Process& rank = plan->processes.front();
  auto variables = RankEnvironment();
  const auto path = variables["PATH"];
  for (const auto& [name, value] : rank.env) variables[name] = value;
  std::erase_if(variables, [](const auto& one) { return !environments::NamesInterfaces(one.first); });
  if (variables.empty()) return;  // avoids loading libnl, which reads the interfaces
  auto interfaces = network::ReadInterfaces();
  if (!interfaces) return;
  const auto command = plan::CommandOf(spec, RankEnvironment(), rank.cwd);
  const auto program = preflight::ProgramOf(command.front(), rank.cwd, path);
  const plan::Host& here = plan->hosts.front();
  auto of_backend = preflight::VariablesOfBackend(here.backend_facts);
  std::ranges::move(preflight::VariablesOfBackend(here.device_facts), std::back_inserter(of_backend));
  for (const preflight::Check& check :
       preflight::CheckInterfaceVariables({variables, program, of_backend, *std::move(interfaces)}))
    plan->warnings.push_back(fmt::format("on {} {}; {}", here.name, check.what, check.fix));
}

}  // namespace

Result<std::string> DtrunOnHosts(const spec::JobSpec& spec) {
  if (spec.cluster.dtrun.has()) return *spec.cluster.dtrun;
  std::error_code failure;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return Error::System("find the path of dtrun", failure.value());
  return own.string();
}

Result<spec::JobSpec> DefaultsOf(const plugin::File& backend, std::vector<std::string> plugin_dirs,
                                 std::vector<std::string> sets) {
  spec::Request request;
  request.sets = std::move(sets);
  request.sets.push_back("backend.path=" + backend.path.string());
  request.sets.push_back("backend.name=" + backend.name);
  request.command = {"true"};
  const Preparation preparation = Preparation::Load(std::move(request), std::move(plugin_dirs));
  if (preparation.problems().empty()) return preparation.spec();
  return Error{DTRUN_FAILED_PRECONDITION, preparation.problems().front().message};
}

Preparation Preparation::Load(spec::Request request, std::vector<std::string> plugin_dirs) {
  Preparation self;
  self.plugin_dirs_ = std::move(plugin_dirs);
  request.environment = Environment();
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath(self.plugin_dirs_, {}))) {
    if (file.kind == plugin::Kind::kBackend) request.backends.push_back(file.name);
    if (file.kind == plugin::Kind::kDevice) request.devices.push_back(file.name);
    if (file.kind == plugin::Kind::kLauncher) request.launcher_names.push_back(plugin::TypedForm(file.name));
  }
  request.exists = [dirs = self.plugin_dirs_](std::string_view kind, const std::string& name,
                                              const spec::JobSpec& so_far) {
    const auto folders = plugin::SearchPath(dirs, so_far.plugins.path.value_or({}));
    const auto of = kind == "backend" ? plugin::Kind::kBackend : plugin::Kind::kLauncher;
    return plugin::Find(of, name, folders).ok();
  };
  request.launchers = [&self](const spec::JobSpec& so_far, const spec::OptionsReader& options) {
    return self.LaunchersFor(so_far, options);
  };
  self.loaded_ = spec::Load(std::move(request), [&self](std::string_view kind, const std::string& name,
                                                        const spec::JobSpec& so_far) {
    return kind == "backend" ? self.SchemaOfBackend(name, so_far) : self.SchemaOfLauncher(name, so_far);
  });
  if (self.launchers_ != nullptr) self.launchers_->EndProbes();
  std::vector<spec::Problem>& problems = self.loaded_.problems;
  for (const Error& wrong : WrongValues(self.spec())) problems.push_back({"", Printable(wrong.text), ""});
  if (problems.empty() && self.spec().failures.path.has()) {
    const std::vector<std::string>& own = *self.spec().failures.path;
    const std::vector<std::filesystem::path> files(own.begin(), own.end());
    const failures::Table table(files);
    for (const std::string& wrong : table.problems()) problems.push_back({"", Printable(wrong), ""});
    failures::UseFiles(files);
  }
  for (spec::PluginOptions& options : self.loaded_.spec.backend_options) {
    if (const Status found = self.FindWrapped(&options); !found)
      problems.push_back({"", Printable(found.error().text), ""});
  }
  self.choice_ = spec::BackendChoiceOf(self.spec());
  for (const std::string& name : self.choice_.names) {
    const auto known = std::ranges::find(self.candidates_, name, &Candidate::name);
    if (known == self.candidates_.end()) self.candidates_.push_back({name});
    const auto place = self.candidates_.begin() + (&name - self.choice_.names.data());
    const auto now = std::ranges::find(self.candidates_, name, &Candidate::name);
    std::rotate(place, now, now + 1);
    if (const auto* options = self.spec().OptionsOf(name)) place->options = *options;
  }
  return self;
}

std::vector<plugin::Folder> Preparation::FoldersOf(const spec::JobSpec& so_far) const {
  return plugin::SearchPath(plugin_dirs_, so_far.plugins.path.value_or({}));
}

std::shared_ptr<LauncherPlugins> Preparation::LaunchersFor(const spec::JobSpec& so_far,
                                                           const spec::OptionsReader& options) {
  std::vector<plugin::Folder> folders = FoldersOf(so_far);
  if (launchers_ == nullptr ||
      !std::ranges::equal(folders, launchers_->folders(), {}, &plugin::Folder::path, &plugin::Folder::path)) {
    launchers_ = std::make_shared<LauncherPlugins>(std::move(folders));
  }
  launchers_->SetOptions(launcher_file_.path, so_far.launcher_options.Snapshot(), options);
  return launchers_;
}

std::shared_ptr<hosts::Launchers> Preparation::launchers() {
  return launchers_ != nullptr ? launchers_ : LaunchersFor(spec(), loaded_.more);
}

Result<plugin::File> Preparation::FileOf(plugin::Kind kind, const std::string& name, bool named,
                                         const spec::JobSpec& so_far) const {
  const bool backend = kind == plugin::Kind::kBackend;
  const spec::PathField& path = backend ? so_far.backend.path : so_far.launcher.path;
  // A plugin that the config does not name uses its own file.
  auto file = plugin::Find(kind, named && path.has() ? *path : name, FoldersOf(so_far));
  if (!file) return file;
  if (backend) {
    file->id = PinOf(so_far.backend.sha256, file->path);
  } else if (named) {
    file->id = PinOf(so_far.launcher.sha256, file->path);
  }
  return file;
}

// The backend that is probably queried next: its plugin loads while the launcher's does.
std::unique_ptr<plugin::Probe> Preparation::BeginBackend(const spec::JobSpec& so_far) const {
  const std::string name = spec::BackendNames(so_far).front();
  if (name == "none") return nullptr;
  const auto file = FileOf(plugin::Kind::kBackend, name, true, so_far);
  if (!file) return nullptr;  // the later query reports the error
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

Result<options::Schema> Preparation::SchemaOfLauncher(const std::string& name, const spec::JobSpec& so_far) {
  const bool named = *so_far.launcher.name == name;
  const auto file = FileOf(plugin::Kind::kLauncher, name, named, so_far);
  if (!file) return file.error();
  if (named) early_ = BeginBackend(so_far);  // usually takes longer to load
  auto launcher = plugin::Probe::Begin(*file);
  if (!launcher) return launcher.error();
  if (named && !here_) here_ = plan::OfferHere();
  if (Status described = (*launcher)->Describe(); !described) return std::move(described).error();
  const plugin::Description& description = (*launcher)->description();
  if (!named) return description.options;
  if (std::ranges::find(description.members, "plan") == description.members.end()) {
    return Error::Of(DTRUN_UNSUPPORTED,
                     "launcher '{}' cannot plan processes, it only has {}; choose another "
                     "launcher.name",
                     name, fmt::join(description.members, ", "));
  }
  launcher_file_ = *file;
  launcher_ = *std::move(launcher);
  return launcher_->description().options;
}

// The candidate is added for a backend that joins the ranks, not for one with options in the config alone.
Result<options::Schema> Preparation::SchemaOfBackend(const std::string& name, const spec::JobSpec& so_far) {
  const std::vector<std::string> names = spec::BackendNames(so_far);
  const bool named = std::ranges::find(names, name) != names.end();
  Candidate candidate{name};
  const auto file = FileOf(plugin::Kind::kBackend, name, named, so_far);
  auto probe = file ? Described(*file) : file.error();
  Result<options::Schema> schema = options::Schema();
  if (probe) {
    candidate.file = (*probe)->description().file;
    candidate.probe = *std::move(probe);
    schema = candidate.probe->description().options;
  } else {
    candidate.why_not = probe.error().text;
    schema = probe.error();
  }
  if (named || joins_) candidates_.push_back(std::move(candidate));
  return schema;
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
  hardware_ = plan::HardwareHere(loaded_.spec, RankEnvironment(), **here_);
  return {};
}

std::vector<plan::Hardware> Preparation::HardwareOf(const std::vector<plan::HostOffer>& offers) const {
  const auto environment = RankEnvironment();
  std::vector<plan::Hardware> reported;
  for (const plan::HostOffer& offer : offers) {
    reported.push_back(plan::HardwareOf(loaded_.spec, environment, offer));
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
  const auto modules = ModulesToAsk(spec(), program_);
  if (!modules) return modules.error();
  const auto missing = preflight::MissingModules(*modules, {});
  const Status found = CheckModules(spec(), program_, hosts::HostName(), missing);
  return found ? std::move(plan) : found.error();
}

Result<plan::Plan> Preparation::PlanOfRun() {
  return plan::HasCluster(loaded_.spec) ? PlanFor({}, {}, nullptr) : MakePlan();
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
  auto program = DtrunOnHosts(loaded_.spec);
  if (!program) return program.error();
  const Candidate& host = candidates_[chosen.host];
  const spec::JobSpec& spec = loaded_.spec;
  plan::Backend backend = *host.answer;
  if (choice_.falls_back()) {
    const std::string why = passed_over_.empty() ? "the first of backend.name" : "because " + passed_over_;
    if (backend.info.empty()) backend.info.emplace_back();
    for (plugin::LaunchInfo& info : backend.info) info.facts.emplace_back("chosen", why);
  }
  plan::DeviceMemory device = DeviceMemoryOf(chosen, reported.size());
  std::vector<std::filesystem::path> plugins = {launcher_file_.path};
  const auto add = [&plugins](const Candidate& one) {
    if (one.file) plugins.push_back(one.file->path);
    AddFiles(one.options, &plugins);
  };
  add(host);
  if (chosen.device) add(candidates_[*chosen.device]);
  for (const auto& one : device.plugins) plugins.emplace_back(one.path);
  // Use the probe once: a later plan may be made in another process, which queries again.
  auto launcher = launcher_ == nullptr ? plugin::Probe::Start(launcher_file_) : std::move(launcher_);
  if (!launcher) return launcher.error();
  auto plan =
      plan::Build({spec, **launcher, std::move(backend), *hardware_, RankEnvironment(), cwd.string(),
                   *std::move(program), std::move(reported), network, find_programs, std::move(device)});
  End(*std::move(launcher));
  if (!plan) return plan;
  if (plan->hosts.size() == 1 && !plan::HasCluster(spec)) {
    if (Status here = CheckInterface(spec); !here) return here.error();
    AddInterfaceNotes(spec, &*plan);
  }
  plan->warnings.insert(plan->warnings.end(), warnings_.begin(), warnings_.end());
  for (const preflight::Check& unknown : UnknownBackends())
    plan->warnings.push_back(fmt::format("{}; {}", unknown.what, unknown.fix));
  if (std::string writable = plugin::GroupWarning(plugins); !writable.empty())
    plan->warnings.push_back(std::move(writable));
  for (std::string& missing : plugin::MissingFolders(FoldersOf(spec)))
    plan->warnings.push_back(std::move(missing));
  // Beside a single named backend, backend.options belong to that one.
  const bool unnamed = chosen.host >= choice_.names.size();
  Json record = RecordOf(spec, unnamed ? spec.OptionsOf(choice_.names.front()) : &host.options);
  if (chosen.device && *chosen.device != chosen.host) {
    for (const Candidate* one : {&host, &std::as_const(candidates_[*chosen.device])})
      RecordOptions(one->options, "backend." + one->name, &record);
  }
  plan->record["config.json"] = JsonText(record);
  program_ = plan->processes.front().argv.front();
  return plan;
}

Result<std::vector<preflight::Request>> Preparation::PreflightRequests(
    const std::vector<plan::HostOffer>& offers) const {
  auto hosts = plan::PlaceRanks(loaded_.spec, *hardware_, HardwareOf(offers));
  if (!hosts) return hosts.error();
  int world_size = 0;
  for (const plan::Host& host : *hosts) world_size += host.local_size;
  preflight::Request request;
  request.host_count = static_cast<int>(hosts->size());
  request.backends = BackendRequests(request.host_count, world_size);
  const bool idle = std::ranges::all_of(
      request.backends, [](const auto& backend) { return backend.name == "none" && !backend.pmix; });
  std::vector<preflight::Request> requests;
  auto modules = ModulesToAsk(spec(), program_);
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
