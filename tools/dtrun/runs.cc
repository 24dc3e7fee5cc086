#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/read_file.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/job/run_dir.h"
#include "core/job/run_registry.h"
#include "core/options/text.h"
#include "core/output/display.h"
#include "core/verdict/event_log.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

struct RunsArguments {
  std::string job;       // empty: all
  std::size_t keep = 0;  // the newest of each job's folder
  bool yes = false;
  bool dry_run = false;
};

// The ended runs of one folder, which are usually those of one job.
struct RunsOfAFolder {
  std::size_t kept = 0;
  std::vector<fs::path> removed;
  std::uint64_t bytes = 0;             // of `removed`
  std::vector<std::string> refused;    // why a run stays that could go
  std::vector<std::string> uncounted;  // why a run stays and is none of those to keep
};

std::uint64_t BytesIn(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || entry->is_symlink(gone)) continue;
    if (const auto size = entry->file_size(gone); !gone) bytes += size;
  }
  return bytes;
}

// All that are known: the user's on this host, and those below the current folder's `runs`.
std::set<fs::path> KnownRuns(const std::string& job) {
  std::set<fs::path> runs;
  for (const job::RegisteredRun& run : job::RegisteredRuns()) {
    if ((job.empty() || run.job == job) && IsRun(run.folder)) runs.insert(run.folder.lexically_normal());
  }
  std::error_code none;
  const fs::path here = fs::current_path(none) / "runs";
  for (const fs::path& one : RunsBelow(here)) {
    if (job.empty() || one.parent_path().filename() == job) runs.insert(one);
  }
  return runs;
}

// A run as its own records have it, wherever it lies now.
struct RecordedRun {
  fs::path path;
  fs::path folder;             // where the job wrote it
  std::uint64_t began_ns = 0;  // since 1970; 0: its records do not say
};

RecordedRun RecordedAt(const fs::path& run) {
  constexpr std::size_t kMostOfALine = std::size_t{64} << 10;
  RecordedRun recorded{run, run};
  const std::string events = ReadForeignFile(run / verdict::kEventsFile, kMostOfALine);
  const auto entry = verdict::FromLine(std::string_view(events).substr(0, events.find('\n')));
  const auto* const opened = entry ? std::get_if<verdict::fact::Opened>(&entry->fact) : nullptr;
  if (opened != nullptr) {
    recorded.folder = fs::path(opened->folder).lexically_normal();
    recorded.began_ns = opened->began_ns;
  }
  return recorded;
}

// Of a run that is still where its job wrote it.
bool IsCopy(const RecordedRun& run) {
  std::error_code none;
  return run.folder != run.path && IsRun(run.folder) && !fs::equivalent(run.folder, run.path, none);
}

std::map<fs::path, RunsOfAFolder> Chosen(const RunsArguments& arguments) {
  std::map<fs::path, std::vector<RecordedRun>> all;
  for (const fs::path& run : KnownRuns(arguments.job)) all[run.parent_path()].push_back(RecordedAt(run));
  std::map<fs::path, RunsOfAFolder> chosen;
  for (auto& [folder, runs] : all) {
    std::ranges::sort(runs, std::ranges::greater(), &RecordedRun::began_ns);
    RunsOfAFolder& of_folder = chosen[folder];
    for (const RecordedRun& recorded : runs) {
      const fs::path& run = recorded.path;
      if (IsCopy(recorded)) {
        of_folder.uncounted.push_back(
            fmt::format("'{}' is a copy of '{}'", run.string(), recorded.folder.string()));
        continue;
      }
      if (recorded.began_ns == 0 && arguments.keep > 0) {
        of_folder.uncounted.push_back(
            fmt::format("'{}' does not say when it began; --keep 0 removes it, too", run.string()));
        continue;
      }
      const bool stays = of_folder.kept < arguments.keep || job::IsLive(run) == std::optional(true);
      const auto may = stays ? Status() : job::MayRemoveRun(run);
      if (!may) of_folder.refused.push_back(may.error().text);
      if (stays || !may) {
        ++of_folder.kept;
        continue;
      }
      of_folder.bytes += BytesIn(run);
      of_folder.removed.push_back(run);
    }
  }
  return chosen;
}

std::string SizeText(std::uint64_t bytes) {
  constexpr double kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
  const auto size = static_cast<double>(bytes);
  if (size < kMiB) return fmt::format("{:.0f} KiB", size / kKiB);
  return size < kGiB ? fmt::format("{:.1f} MiB", size / kMiB) : fmt::format("{:.1f} GiB", size / kGiB);
}

std::string CountedRuns(std::size_t count) { return fmt::format("{} run{}", count, count == 1 ? "" : "s"); }

// `false`: no, or no answer.
bool Confirmed(const std::string& question) {
  WriteOutput(question + " [y/N] ");
  if (!FlushOutput()) return false;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int CleanRuns(const RunsArguments& arguments) {
  std::string table;
  std::size_t removed = 0;
  std::uint64_t bytes = 0;
  const auto chosen = Chosen(arguments);
  std::size_t failed = 0;
  for (const auto& [folder, runs] : chosen) {
    failed += runs.refused.size();
    for (const std::string& why : runs.refused) Refuse("kept: " + why);
    for (const std::string& what : runs.uncounted) PrintMessage("dtrun: kept: {}\n", what);
    if (runs.removed.empty()) continue;
    table +=
        fmt::format("{}: {} to remove ({}), {} to keep\n", Printable(options::ShownPath(folder.string())),
                    CountedRuns(runs.removed.size()), SizeText(runs.bytes), runs.kept);
    removed += runs.removed.size();
    bytes += runs.bytes;
  }
  WriteForReading(output::TamedMessage(table));
  if (chosen.empty() && !arguments.job.empty())
    return Refuse(
        fmt::format("there is no run of a job '{}'; 'dtrun ps --all' lists the jobs", arguments.job));
  if (removed == 0) {
    WriteForReading("nothing to remove\n");
    return failed == 0 ? 0 : 1;
  }
  if (arguments.dry_run) return failed == 0 ? 0 : 1;
  if (!arguments.yes) {
    if (::isatty(STDIN_FILENO) != 1)
      return Refuse("--yes is needed where standard input is no terminal; nothing was removed");
    if (!Confirmed(fmt::format("remove {} ({})?", CountedRuns(removed), SizeText(bytes)))) return 1;
  }
  for (const auto& [folder, runs] : chosen) {
    for (const fs::path& run : runs.removed) {
      if (const auto done = job::RemoveRun(run); !done) {
        Refuse("kept: " + done.error().text);
        ++failed;
        --removed;
      }
    }
  }
  WriteForReading(fmt::format("removed {}\n", CountedRuns(removed)));
  return failed == 0 ? 0 : 1;
}

}  // namespace

void AddRuns(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<RunsArguments>();
  CLI::App* runs = app.add_subcommand("runs", "Remove old run folders");
  runs->require_subcommand(1);
  CLI::App* clean = runs->add_subcommand("clean", "Remove folders of ended runs; asks first");
  AddJobWord(clean, &own->job, "A job's name: only its runs");
  clean->add_option("--keep", own->keep, "How many of the newest runs stay in each job's folder")
      ->type_name("N")
      ->check(NotACount)
      ->required();
  clean->add_flag("-y,--yes", own->yes, "Do not ask");
  clean->add_flag("--dry-run", own->dry_run, "Show what would be removed, and remove nothing");
  clean->footer(
      "Takes the runs that 'dtrun ps --all' lists and those below ./runs. Never removes a live job, or a run "
      "with a file that dtrun did not write.\n"
      "Exit code: 0; 1 if you said no or a run could not be removed; 2 when the command line is wrong.");
  to->push_back({clean, [own] { return CleanRuns(*own); }});
}

}  // namespace dtrun::cli
