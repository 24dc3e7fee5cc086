#include "tools/dtrun/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/diagnosis/log.h"
#include "core/diagnosis/report.h"
#include "core/output/display.h"
#include "tools/dtrun/explain_run.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kNothingKnown = 1;
void Print(const Json& json) { fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace)); }

int Fail(const std::string& text) {
  fmt::print(stderr, "dtrun: {}\n", text);
  return kUserError;
}

int Tell(const std::vector<diagnosis::Finding>& findings, const std::string& where, bool json) {
  if (json) {
    Print({{"findings", diagnosis::ToJson(findings)}});
  } else {
    fmt::print("{}", output::Tamed(diagnosis::ToText(findings, where)));
  }
  return findings.empty() ? kNothingKnown : 0;
}

int ExplainFile(const fs::path& file, const std::string& name, bool json) {
  const auto findings = diagnosis::FindFailuresIn(file);
  return findings ? Tell(*findings, name, json) : Fail(findings.error().text);
}

int ExplainRun(const fs::path& folder, bool json) {
  const auto story = ReadRun(folder);
  if (!story) return Fail(story.error().text);
  if (json) {
    Print(ToJson(*story));
  } else {
    fmt::print("{}", output::Tamed(ToText(*story)));
  }
  return 0;
}

// The newest of runs/JOB/latest under the working folder.
std::optional<fs::path> LatestRun() {
  std::optional<fs::path> newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (fs::directory_iterator job("runs", error), end; !error && job != end; job.increment(error)) {
    std::error_code missing;
    const fs::path link = job->path() / "latest";
    const fs::file_time_type time = fs::last_write_time(link, missing);
    if (missing || (newest && time <= newest_time)) continue;
    newest = link;
    newest_time = time;
  }
  return newest;
}

}  // namespace

CLI::App* AddExplain(CLI::App& app, ExplainArguments* to) {
  CLI::App* explain =
      app.add_subcommand("explain", "What a failure text means, or why a job runs as it does");
  explain
      ->add_option("WHAT", to->words,
                   "Text of a failure; a file with it; - for stdin; a run directory, also of a running job; "
                   "or latest, the newest under runs/")
      ->required();
  explain->add_flag("--json", to->json, "Machine-readable");
  explain->footer("Exit code: 0; 1 when nothing is known of the text; 2 when it cannot be read.");
  return explain;
}

int Explain(const ExplainArguments& arguments) {
  const std::string text = fmt::format("{}", fmt::join(arguments.words, " "));
  if (text == "-") return ExplainFile("/dev/stdin", "", arguments.json);
  if (text == "latest") {
    const auto latest = LatestRun();
    if (!latest) return Fail("there is no run under 'runs' in this folder; give a run directory");
    return ExplainRun(*latest, arguments.json);
  }
  std::error_code none;
  if (fs::is_directory(text, none)) return ExplainRun(text, arguments.json);
  if (fs::exists(text, none)) return ExplainFile(text, text, arguments.json);
  return Tell(diagnosis::FindFailures(text), "", arguments.json);
}

}  // namespace dtrun::cli
