#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/failures/finding.h"
#include "core/failures/report.h"
#include "core/output/display.h"
#include "core/process/process.h"
#include "core/spec/lookup.h"
#include "core/spec/read.h"
#include "tools/dtrun/explain_run.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kNothingKnown = 1;

struct ExplainArguments {
  std::vector<std::string> words;     // none: the newest run of this folder
  std::vector<std::string> failures;  // the user's own failure files
  bool json = false;
};

void Print(const Json& json) { WriteOutput(JsonDocument(1, json)); }

int Tell(const std::vector<failures::Finding>& findings, const std::string& where, bool json) {
  if (json) {
    Print({{"findings", failures::ToJson(findings)}});
  } else {
    WriteForReading(output::TamedMessage(failures::ToText(findings, where)));
  }
  return findings.empty() ? kNothingKnown : 0;
}

int TellMentions(const std::vector<failures::Mention>& mentions, bool json) {
  if (!json && mentions.empty()) return Tell({}, "", json);
  if (json) {
    Print({{"findings", Json::array()}, {"mentions", failures::ToJson(mentions)}});
  } else {
    WriteForReading(output::TamedMessage(failures::ToText(mentions)));
  }
  return kNothingKnown;
}

int ExplainFile(const fs::path& file, const std::string& name, bool json) {
  const failures::LogSource source =
      name.empty() ? failures::LogSource::kAny : failures::LogSource::kUserPath;
  const auto findings = failures::FindFailuresIn(file, failures::kMostBytes, source);
  return findings ? Tell(*findings, name, json) : Refuse(findings.error().text);
}

// Whether the user named the run. A run that dtrun chose, for a folder or `latest`, is printed.
enum class Chosen : bool { kByUser, kByDtrun };

int ExplainRun(const fs::path& named, const ExplainArguments& arguments, Chosen chosen = Chosen::kByUser) {
  std::error_code none;
  const fs::path real = chosen == Chosen::kByUser ? fs::path() : fs::canonical(named, none);
  const fs::path& folder = real.empty() ? named : real;
  if (arguments.failures.empty()) failures::UseFiles(OwnFailuresOf(folder));
  auto story = ReadRun(folder);
  if (!story) return Refuse(story.error().text);
  if (chosen == Chosen::kByDtrun) story->chosen = fs::proximate(folder, none).string();
  if (arguments.json) {
    Print(ToJson(*story));
  } else {
    WriteForReading(output::TamedMessage(ToText(*story)));
  }
  for (const std::string& one : story->unread) PrintMessage("dtrun: {}\n", output::Tamed(one));
  return story->unread.empty() ? 0 : kUserError;
}

// "run.log", "runs/job": not a failure text.
bool LooksLikeAPath(const std::string& word) {
  if (word.find_first_of(" \t\n") != std::string::npos) return false;
  return word.find('/') != std::string::npos || fs::path(word).has_extension();
}

bool MayNameAJob(const std::string& word) {
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         word.npos;
}

// "latst": a single word that is a likely typo of `latest`.
bool IsNearlyLatest(const std::vector<std::string>& words) {
  return words.size() == 1 && Nearest(words[0], {"latest"}).has_value();
}

// A number alone is an exit code; a signal's name stands for its exit code: "139", "SIGSEGV". Other words
// stay unchanged.
std::string WithExitCode(const std::string& text) {
  constexpr int kFirstCode = 124, kBySignal = 128, kSignals = 64;
  if (text.size() == 3 && IsDigits(text)) {
    const int code = std::stoi(text);
    return code >= kFirstCode && code <= kBySignal + kSignals ? "exit code " + text : text;
  }
  for (int signal = 1; signal <= kSignals; ++signal) {
    if (process::SignalName(signal) == text)
      return fmt::format("{} (exit code {})", text, kBySignal + signal);
  }
  return text;
}

int ExplainWords(const ExplainArguments& arguments) {
  std::string text;
  for (const std::string& word : arguments.words) {
    if (!text.empty()) text += ' ';
    text +=
        word.starts_with(" [") || word.starts_with(" -") ? word.substr(1) : word;  // added by KeepBrackets
  }
  if (text == "-" || text == "/dev/stdin") return ExplainFile("/dev/stdin", "", arguments.json);
  if (text.empty() || text == "latest") {
    const auto latest = FindRun(text);
    return latest ? ExplainRun(*latest, arguments, Chosen::kByDtrun) : Refuse(latest.error().text);
  }
  std::error_code none;
  if (const auto newest = NewestRunIn(text)) return ExplainRun(*newest, arguments, Chosen::kByDtrun);
  // A program that is started as ./train has the job's name, and a folder of its data may.
  const bool named =
      arguments.words.size() == 1 && text.find('/') == text.npos && !IsRun(text) && RunNamed(text);
  if (named) {
    const auto run = FindRun(text);
    return run ? ExplainRun(*run, arguments, Chosen::kByDtrun) : Refuse(run.error().text);
  }
  if (fs::is_directory(text, none)) return ExplainRun(text, arguments);
  if (fs::exists(text, none)) return ExplainFile(text, text, arguments.json);
  text = WithExitCode(text);
  const std::vector<failures::Finding> findings = failures::FindFailures(text);
  if (!findings.empty()) return Tell(findings, "", arguments.json);
  if (IsNearlyLatest(arguments.words)) {
    return Refuse(fmt::format("there is no file '{}'; did you mean 'dtrun explain latest'?", text));
  }
  if (spec::FindSpec(spec::CoreSchema(), text) != nullptr || spec::IsTable(spec::CoreSchema(), text) ||
      text.starts_with("backend.options.")) {
    return Refuse(fmt::format("'{0}' is an option, not a failure; write dtrun config explain {0}", text));
  }
  if (arguments.words.size() == 1 && LooksLikeAPath(text)) {
    return Refuse(
        fmt::format("there is no file or folder '{}' here, and the text matches no known failure", text));
  }
  const std::vector<failures::Mention> mentions = failures::FindMentions(text);
  if (mentions.empty() && !arguments.json && MayNameAJob(text)) {
    PrintMessage(
        "dtrun: there is no job '{}', and no known failure with this text; 'dtrun ps --all' lists jobs\n",
        output::Tamed(text));
    return kNothingKnown;
  }
  return TellMentions(mentions, arguments.json);
}

int Explain(const ExplainArguments& arguments) {
  failures::UseFiles({arguments.failures.begin(), arguments.failures.end()});
  const int code = ExplainWords(arguments);
  const auto known = failures::Known();
  for (const std::string& problem : known->problems()) PrintMessage("dtrun: known failures: {}\n", problem);
  return known->problems().empty() ? code : kUserError;
}

}  // namespace

void KeepBrackets(std::vector<std::string>* words) {
  for (std::string& word : *words) {
    const bool text = word.starts_with('-') && word.find_first_of(" \t\n") != std::string::npos;  // of a log
    if (word.starts_with('[') || text) word.insert(0, 1, ' ');
  }
}

void AddExplain(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<ExplainArguments>();
  CLI::App* explain =
      app.add_subcommand("explain", "What a failure message means, or why a job runs as it does");
  explain
      ->add_option(
          "WHAT", own->words,
          "An error message; a file that contains it; - for stdin; a job's name or run directory, "
          "running or past; or latest, as without a word: the newest run started in this folder, also "
          "by 'dtrun torchrun', or your only live job")
      ->type_name("");
  explain
      ->add_option("--failures", own->failures,
                   "A file of your own that explains error messages, as in failures.path")
      ->type_name("FILE")
      ->allow_extra_args(false);
  explain->add_flag("--json", own->json, "Machine-readable");
  explain->footer(
      "Exit code: 0; 1 when the text is unknown; 2 when a file, or an entry of it, cannot be read.");
  to->push_back({explain, [own] { return Explain(*own); }});
}

}  // namespace dtrun::cli
