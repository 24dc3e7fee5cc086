#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/program_files.h"
#include "core/base/standard_output.h"
#include "core/environments/dialect.h"
#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"
#include "tools/dtrun/completion/candidates.h"
#include "tools/dtrun/templates.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

std::vector<Candidate> PluginNames(std::string_view kind) {
  std::vector<Candidate> names;
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath({}, {}))) {
    const std::string_view its = plugin::KindText(file.kind);
    if (!kind.empty() && kind != its) continue;
    const bool launcher = file.kind == plugin::Kind::kLauncher;
    names.push_back({launcher ? plugin::TypedForm(file.name) : file.name, std::string(its)});
  }
  return names;
}

options::Schema PluginOptions(std::string_view kind) {
  options::Schema options;
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath({}, {}))) {
    if (plugin::KindText(file.kind) != kind) continue;
    auto probe = plugin::Probe::Start(file);
    if (!probe) continue;  // shells cannot show the reason
    for (const options::Spec& spec : (*probe)->description().options) {
      if (std::ranges::find(options, spec.key, &options::Spec::key) == options.end()) options.push_back(spec);
    }
  }
  return options;
}

std::vector<std::string> ProgramsOfPath(std::string_view prefix) {
  const char* path = std::getenv("PATH");
  std::error_code failure;
  return ProgramsWithPrefix(prefix, path == nullptr ? "" : path, std::filesystem::current_path(failure));
}

}  // namespace

int ShowCandidates(const CLI::App& root, std::vector<const CLI::App*> runs,
                   const std::vector<std::string>& words) {
  CompletionSources sources;
  sources.root = &root;
  sources.runs = std::move(runs);
  sources.options = spec::CoreSchema();
  for (const auto& dialect : environments::Dialects())
    sources.dialects.push_back({dialect.name, dialect.summary});
  for (const auto& option : torchrun::Options(torchrun::Program::kTorchrun)) {
    sources.torchrun.push_back({option.Spelling(), std::string(option.help)});
  }
  if (const auto templates = Templates()) {
    for (const Template& one : *templates) sources.templates.push_back({one.name, one.purpose});
  }
  sources.plugins = PluginNames;
  sources.plugin_options = PluginOptions;
  sources.programs = ProgramsOfPath;
  WriteOutput(RenderCandidates(Complete(sources, words)));
  return 0;
}

}  // namespace dtrun::cli
