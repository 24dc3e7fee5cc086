#include "tools/dtrun/explain_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/json.h"
#include "core/base/read_file.h"
#include "core/base/text.h"
#include "core/failures/report.h"
#include "core/job/run_dir.h"
#include "core/verdict/event_log.h"
#include "core/verdict/verdict.h"
#include "tools/dtrun/find_run.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;
constexpr char kNotRecorded[] = "not recorded";
constexpr std::size_t kMostOfAFile = std::size_t{1} << 30;  // far above any job's plan.json

Error NotOurs(const fs::path& file, std::string_view why) {
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("'{}' was not written by dtrun, or was changed later: {}; name the folder of another run",
                  file.string(), why)};
}

// Whether `key` is absent, or a list of objects.
bool IsListOfObjects(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ||
         (found->is_array() && std::ranges::all_of(*found, [](const Json& one) { return one.is_object(); }));
}

Result<Json> ReadJson(const fs::path& file) {
  if (Status may = MayRead(file); !may) return may.error();
  const Result<std::string> text = ReadWholeForeignFile(file, kMostOfAFile);
  if (!text) return text.error();
  Json json = ParseJson(*text);
  if (json.is_discarded())
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("'{}' is not JSON: it was cut or changed since dtrun wrote it; "
                             "explain the log of a rank instead: dtrun explain {}/rank-0.err",
                             file.string(), file.parent_path().string())};
  if (!json.is_object()) return NotOurs(file, "an object is expected");
  return json;
}

// The log folder of the last generation, and its plan if it differs from the first.
fs::path LogFolder(const fs::path& run) {
  for (int generation = 1;; ++generation) {
    std::error_code failure;
    if (!fs::exists(run / fmt::format("generation-{}", generation), failure)) {
      return generation == 1 ? run : run / fmt::format("generation-{}", generation - 1);
    }
  }
}

constexpr char kRunning[] = "running, or ended without a verdict";

std::string StateText(const std::optional<Json>& verdict, const std::optional<verdict::Story>& events) {
  // After a restart, verdict.json tells of the generation before.
  if (!verdict || (events && events->facts().cut)) {
    const std::uint64_t generation = events ? events->facts().generation : 0;
    return generation == 0 ? kRunning : fmt::format("{}, in generation {}", kRunning, generation);
  }
  const std::string result = Printable(TextAt(*verdict, "/result"));
  if (result == "not started") return "not started: " + TextAt(*verdict, "/error");
  std::string text = result;
  // The verdict's own text includes the time.
  const bool told = !TextAt(*verdict, "/text").empty();
  const char* const took = TextAt(*verdict, "/generation") == "0" ? "duration_seconds" : "job_seconds";
  if (!told && verdict->contains(took) && verdict->at(took).is_number()) {
    const std::chrono::duration<double> time(verdict->at(took).get<double>());
    text += " after " + verdict::FormatElapsed(std::chrono::duration_cast<std::chrono::nanoseconds>(time));
  }
  const std::string exit_class = Printable(TextAt(*verdict, "/exit_class"));
  if (!exit_class.empty())
    text += fmt::format(", exit code {} ({})", Printable(TextAt(*verdict, "/exit_code")), exit_class);
  return text + (events && events->over() && events->facts().restarts ? "; it is started again" : "");
}

// `interrupted`: the job was interrupted, so ranks' reports about others are consequences.
Result<std::vector<RankFinding>> FindingsOf(const fs::path& run, const Json& plan, bool interrupted) {
  const fs::path folder = LogFolder(run);
  std::vector<RankFinding> findings;
  for (const Json& process : plan.value("processes", Json::array())) {
    const int rank = process.value("rank", 0);
    std::vector<fs::path> logs;
    for (const char* const stream : {"err", "out"}) {
      fs::path log = folder / fmt::format("rank-{}.{}", rank, stream);
      std::error_code failure;
      if (fs::is_regular_file(log, failure)) logs.push_back(std::move(log));
    }
    const std::string program = TextAt(process, "/argv/0");
    auto known = failures::FindInLogs(logs, failures::LogSource::kUserPath, failures::FactsOf(program));
    if (!known) return known.error();
    if (!*known || (interrupted && (*known)->finding.failure->depth != failures::Depth::kCause)) continue;
    findings.push_back({rank, **std::move(known)});
  }
  return findings;
}

// The job's records, named as the folder is now; nullopt: it has none that this dtrun reads. An error: they
// are there and cannot be read.
Result<std::optional<verdict::Story>> ReadEvents(const fs::path& folder) {
  const Result<std::string> text = ReadWholeForeignFile(folder / verdict::kEventsFile, kMostOfAFile);
  if (!text && text.error().code != DTRUN_NOT_FOUND) return text.error();
  Result<verdict::Story> story = text ? verdict::Replay(*text) : text.error();
  if (!story) return std::optional<verdict::Story>();
  // The file was begun by a generation that could not start: the one that counts is in the file before.
  if (!story->begun() && !story->earlier().first.empty()) {
    const Result<std::string> before = ReadWholeForeignFile(folder / verdict::kEventsBefore, kMostOfAFile);
    if (before) story = verdict::Replay(*before + *text);
    if (!story) return std::optional<verdict::Story>();
  }
  story->MoveTo(fs::absolute(folder).lexically_normal());
  return std::optional(*std::move(story));
}

// The verdict refers to logs that may have been deleted or moved since.
std::string WithoutLostLogs(std::string verdict) {
  constexpr std::string_view kAll = "(all of it: ", kStar = ".*)";
  for (auto at = verdict.find(kAll); at != std::string::npos; at = verdict.find(kAll, at + 1)) {
    const auto path_at = at + kAll.size(), end = verdict.find(kStar, path_at);
    if (end == std::string::npos) break;
    const std::string path = verdict.substr(path_at, end - path_at);
    std::error_code failure;
    if (fs::exists(path + ".out", failure) || fs::exists(path + ".err", failure)) continue;
    verdict.replace(at, kAll.size(), "(the rest is gone: there is no ");
  }
  return verdict;
}

bool IsThere(const fs::path& file) {
  std::error_code failure;
  return fs::symlink_status(file, failure).type() != fs::file_type::not_found;
}

// The error, with a next step.
std::string Unread(const Error& error) {
  if (error.text.find("; ") != error.text.npos) return error.text;
  return error.text + "; what it holds is left out: copy the run's folder again, if this is a copy";
}

std::uint64_t GenerationOf(const Json& verdict) {
  const auto found = verdict.find("generation");
  return found == verdict.end() || !found->is_number_unsigned() ? 0 : found->get<std::uint64_t>();
}

// Whether records are missing that verdict.json was made of. It is of the generation in which the records
// end, or of a later one.
bool LacksRecords(const verdict::Story& events, const Json& verdict) {
  const verdict::GenerationSummary last = verdict::Summarise(events.facts());
  return !events.over() || events.gap() || GenerationOf(verdict) > last.generation ||
         TextAt(verdict, "/exit_class") != last.exit_class ||
         TextAt(verdict, "/exit_code") != std::to_string(last.exit_code);
}

// What the plan and the files beside it tell. Adds what cannot be read to story->unread.
void ReadChoices(const fs::path& folder, Records files, RunStory* story) {
  const auto take = [story](auto read, auto* to) {
    if (read) *to = *std::move(read);
    if (!read) story->unread.push_back(Unread(read.error()));
    return read.ok();
  };
  // A later generation has its own plan if something changed.
  const fs::path latest = LogFolder(folder) / "plan.json";
  const fs::path plan = IsThere(latest) ? latest : folder / "plan.json";
  if (!take(ReadJson(plan), &files.plan)) return;
  for (const char* const key : {"processes", "hosts"}) {
    if (IsListOfObjects(files.plan, key)) continue;
    const Error error = NotOurs(plan, fmt::format("\"{}\" is not a list of objects", key));
    return story->unread.push_back(error.text);
  }
  const bool configured = take(ReadJson(folder / "config.json"), &files.config);
  if (IsThere(folder / "network.json")) take(ReadJson(folder / "network.json"), &files.network);
  story->job = Printable(TextAt(files.plan, "/job"));
  if (configured) story->choices = ChoicesOf(files);
  story->gpus = ReadGpus(files.plan);
  if (IsThere(folder / "network.txt"))
    take(ReadWholeForeignFile(folder / "network.txt", kMostOfAFile), &story->network);
  const bool interrupted = files.verdict && !TextAt(*files.verdict, "/interrupt").empty();
  take(FindingsOf(folder, files.plan, interrupted), &story->findings);
}

Result<RunStory> ReadRecords(const fs::path& folder) {
  if (Status may = MayRead(folder); !may) return may.error();
  Records files;
  RunStory story;
  if (IsThere(folder / "verdict.json")) {
    auto verdict = ReadJson(folder / "verdict.json");
    if (verdict && TextAt(*verdict, "/result").empty())
      verdict = NotOurs(folder / "verdict.json", "it has no \"result\"");
    if (verdict) files.verdict = *std::move(verdict);
    if (!verdict) story.unread.push_back(Unread(verdict.error()));
  }
  auto read = ReadEvents(folder);
  if (!read) story.unread.push_back(Unread(read.error()));
  const std::optional<verdict::Story> events = read ? *std::move(read) : std::nullopt;
  // verdict.json knows better after a generation that did not start, after dtrun was killed, and if records
  // are missing.
  const std::string result = files.verdict ? TextAt(*files.verdict, "/result") : "";
  const bool final = result == "not started" || result == "agent killed";
  const bool cut = !final && files.verdict && events &&
                   GenerationOf(*files.verdict) >= events->facts().generation &&
                   LacksRecords(*events, *files.verdict);
  if (events && events->over() && !final && !cut) files.verdict = ParseJson(verdict::VerdictJson(*events));
  if (files.verdict) story.job = Printable(TextAt(*files.verdict, "/job"));
  files.none_joined = events && !events->facts().ranks.empty() &&
                      std::ranges::none_of(events->facts().ranks, &verdict::RankFacts::joined);
  story.state = StateText(files.verdict, cut ? std::nullopt : events);
  if (files.verdict) story.verdict = WithoutLostLogs(TextAt(*files.verdict, "/text"));
  if (files.verdict && story.verdict.empty())
    story.straggler = Printable(TextAt(*files.verdict, "/straggler/text"));
  // The job still runs, or dtrun was killed.
  if (events && events->facts().cut && !cut) story.verdict = verdict::VerdictText(events->facts());
  if (const auto at = story.verdict.find(verdict::kOpenEnd);
      at != story.verdict.npos && job::IsLive(folder) == std::optional(true))
    story.verdict.replace(at, sizeof verdict::kOpenEnd - 1, " is running and does not answer; last record ");
  if (const auto at = story.verdict.find(verdict::kOpenEnd);
      result == "agent killed" && at != story.verdict.npos)
    story.verdict.replace(at, sizeof verdict::kOpenEnd - 1, ": " + TextAt(*files.verdict, "/error") + " ");
  const bool silent = !final && files.verdict && read && !(events && events->begun()) &&
                      IsThere(folder / verdict::kEventsFile);
  if (cut || silent)
    story.note = fmt::format(
        "{} was cut or lacks records, or is of another dtrun: the verdict is that of verdict.json",
        verdict::kEventsFile);
  // A job that could not start may have left only a verdict.
  if (files.verdict && !IsThere(folder / "plan.json")) return story;
  const bool told = files.verdict || (events && events->begun());
  if (!told && story.unread.empty() && !IsThere(folder / "plan.json")) {
    if (job::IsLive(folder) == std::optional(true)) {
      auto live = LookAtLive(folder);
      if (!live)
        return Error::Of(DTRUN_NOT_FOUND, "the job in '{}' is being started; ask again", folder.string());
      story.job = Printable(live->answer.job);
      story.state = StateOf(*live);
      story.live = *std::move(live);
      return story;
    }
    return Error{DTRUN_NOT_FOUND,
                 fmt::format("open '{}': no such file or directory; '{}' is not a run directory of dtrun",
                             (folder / "plan.json").string(), folder.string())};
  }
  try {
    ReadChoices(folder, std::move(files), &story);
  } catch (const fs::filesystem_error& error) {
    story.unread.push_back(
        Unread(Error::System(fmt::format("read '{}'", folder.string()), error.code().value())));
  } catch (const Json::exception&) {  // valid JSON but not a record of dtrun
    const char kWhy[] = "a value in verdict.json, plan.json, config.json or network.json has a wrong type";
    story.unread.push_back(NotOurs(folder, kWhy).text);
  }
  if (!told && !story.unread.empty()) return Error{DTRUN_INVALID_ARGUMENT, story.unread.front()};
  return story;
}

// Whether the verdict already contains the failure and the advice.
bool IsToldBy(const std::string& verdict, const failures::Finding& finding) {
  return verdict.find(": " + finding.what + " (" + finding.failure->id) != std::string::npos;
}

}  // namespace

std::vector<fs::path> OwnFailuresOf(const fs::path& folder) {
  const auto config = ReadJson(folder / "config.json");
  const Json list = ParseJson(config ? TextAt(*config, "/failures.path/value") : "");
  std::vector<fs::path> files;
  for (const Json& file : list.is_array() ? list : Json::array()) {
    if (file.is_string()) files.emplace_back(file.get<std::string>());
  }
  return files;
}

Result<RunStory> ReadRun(const fs::path& folder) {
  Result<RunStory> story = ReadRecords(folder);
  if (!story || !story->state.starts_with(kRunning)) return story;
  auto live = LookAtLive(folder);
  if (live) {
    story->state = StateOf(*live);
    story->live = *std::move(live);
    story->verdict.clear();
  } else if (live.error().code != DTRUN_NOT_FOUND) {
    story->note = Printable(live.error().text);
  }
  return story;
}

std::string ToText(const RunStory& story) {
  // The verdict begins with the job and its result.
  std::string out =
      story.verdict.empty() ? fmt::format("job '{}': {}\n", story.job, story.state) : story.verdict;
  if (!out.ends_with('\n')) out += '\n';
  const auto append = std::back_inserter(out);
  if (!story.chosen.empty()) fmt::format_to(append, "  {:<10} {}, the newest\n", "run", story.chosen);
  if (!story.straggler.empty()) fmt::format_to(append, "  {:<10} {}\n", "straggler", story.straggler);
  if (!story.note.empty()) fmt::format_to(append, "  {:<10} {}\n", "record", story.note);
  if (story.live) out += ToText(*story.live);
  for (const Choice& choice : story.choices) {
    fmt::format_to(append, "  {:<10} {}{}\n", choice.topic,
                   choice.value.empty() ? kNotRecorded : choice.value,
                   choice.reason.empty() ? "" : "\n             because: " + choice.reason);
  }
  out += ToText(story.gpus);
  out += story.network;
  for (const auto& [rank, known] : story.findings) {
    if (IsToldBy(story.verdict, known.finding)) continue;
    fmt::format_to(append, "rank {}: {} ({}; {})\n    | {}\n  next: {}\n", rank, known.finding.what,
                   known.finding.failure->id,
                   failures::PlaceText(known.file.filename().string(), known.finding), known.finding.line,
                   known.finding.fix);
  }
  return out;
}

Json ToJson(const RunStory& story) {
  Json choices = Json::array();
  for (const Choice& choice : story.choices) {
    choices.push_back({{"topic", choice.topic},
                       {"value", choice.value.empty() ? Json(nullptr) : Json(choice.value)},
                       {"reason", choice.reason}});
  }
  Json findings = Json::array();
  for (const auto& [rank, known] : story.findings) {
    Json one = failures::ToJson(known.finding);
    one["rank"] = rank;
    one["file"] = known.file.string();
    findings.push_back(std::move(one));
  }
  return {{"job", story.job},
          {"chosen", story.chosen.empty() ? Json(nullptr) : Json(story.chosen)},
          {"state", story.state},
          {"live", story.live ? ToJson(*story.live) : Json(nullptr)},
          {"verdict", story.verdict.empty() ? Json(nullptr) : Json(story.verdict)},
          {"straggler", story.straggler.empty() ? Json(nullptr) : Json(story.straggler)},
          {"note", story.note.empty() ? Json(nullptr) : Json(story.note)},
          {"unread", story.unread},
          {"choices", choices},
          {"gpu_peers", ToJson(story.gpus)},
          {"network", story.network.empty() ? Json(nullptr) : Json(story.network)},
          {"findings", findings}};
}

}  // namespace dtrun::cli
