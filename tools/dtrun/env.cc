// `dtrun env`.
#include <fmt/format.h>

#include "core/base/json.h"
#include "core/base/standard_output.h"
#include "core/plan/dialects.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

struct EnvArguments {
  int rank = 0;
  std::string dialect;
  bool list = false;
  bool json = false;
  bool shell = false;
};

int RefuseEnv(const std::string& text) { return Refuse("env: " + text); }

void List(bool json) {
  Json out = Json::array();
  for (const environments::Dialect& dialect : environments::Dialects()) {
    if (!json) PrintOutput("{:<12} {}\n", dialect.name, dialect.summary);
    out.push_back({{"name", dialect.name}, {"summary", dialect.summary}});
  }
  if (json) WriteOutput(JsonDocument(1, {{"dialects", out}}));
}

// Single-quoted for POSIX shells.
std::string Quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

void Print(const EnvArguments& arguments, const environments::Variables& variables) {
  if (arguments.json) {
    const Json out = {{"rank", arguments.rank}, {"dialect", arguments.dialect}, {"env", variables}};
    WriteOutput(JsonDocument(1, out));
    return;
  }
  bool token = false;
  for (const auto& [name, value] : variables) {
    if (arguments.shell) {
      PrintOutput("export {}={}\n", name, Quote(value));
    } else {
      PrintOutput("{}={}\n", name, value);
    }
    token = token || value.find("⟦") != std::string::npos;
  }
  if (token) PrintMessage("A name in ⟦brackets⟧ is known only when the job starts.\n");
}

int ShowEnv(const EnvArguments& arguments, ConfigArguments config) {
  if (arguments.list) {
    List(arguments.json);
    return 0;
  }
  if (arguments.dialect.empty()) return RefuseEnv("which dialect? add --as DIALECT; --list shows them");
  auto dialect = environments::FindDialect(arguments.dialect);
  if (!dialect) return RefuseEnv(dialect.error().text);
  // Rank identities depend neither on the command nor on the backend.
  if (config.file.empty() && config.command.empty()) config.command = {"true"};
  config.sets.emplace_back("backend.name=none");
  auto preparation = LoadOrExplain(config);
  if (!preparation) return kUserError;
  auto plan = preparation->MakePlan();
  if (!plan) return RefuseEnv(plan.error().text);
  if (arguments.rank < 0 || arguments.rank >= plan->world_size()) {
    return RefuseEnv(fmt::format("there is no rank {}; the job has {}, from 0 to {}", arguments.rank,
                                 plan->world_size(), plan->world_size() - 1));
  }
  environments::Contract contract = (*dialect)->write(plan::TableOf(*plan), arguments.rank);
  const auto inherited = launch::Environment();
  for (const auto& [name, value] : contract.fallback) {
    if (!inherited.contains(name)) contract.set.emplace(name, value);
  }
  Print(arguments, contract.set);
  return 0;
}

}  // namespace

void AddEnv(CLI::App& app, ConfigArguments* job, Verbs* to) {
  const auto own = std::make_shared<EnvArguments>();
  CLI::App* verb = app.add_subcommand("env", "Print a rank's environment as another launcher would set it");
  verb->add_option("--rank", own->rank, "Number of the rank")->type_name("K")->capture_default_str();
  verb->add_option("--as", own->dialect, "Dialect of a launcher or framework; --list shows them")
      ->type_name("DIALECT");
  CLI::Option* list = verb->add_flag("--list", own->list, "List the dialects");
  CLI::Option* json = verb->add_flag("--json", own->json, "Machine-readable");
  verb->add_flag("--shell", own->shell, "As export commands for a shell")->excludes(json)->excludes(list);
  verb->footer(
      "The ranks are those of the config; without one, those of -n and --hosts.\n"
      "Variables that are only a fallback are printed unless they are set already.");
  AddJobFlags(verb, job);
  to->push_back({verb, [own, job] { return ShowEnv(*own, *job); }});
}

}  // namespace dtrun::cli
