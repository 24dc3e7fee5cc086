#include "core/job/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/fd.h"
#include "core/base/json.h"
#include "core/base/own_file.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/output/file_write.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

// "⟦store⟧" -> "store"
std::string NameOf(const std::string& token) { return ReplaceAll(ReplaceAll(token, "⟦", ""), "⟧", ""); }

Json EnvironmentJson(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> sorted;
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    sorted[name] = MaskValue(name, entry.substr(equals + 1));
  }
  return sorted;
}

constexpr char kContinues[] = "; the job continues without it";

Status Append(int file, const std::filesystem::path& path, std::string_view text,
              const char* then = kContinues) {
  const int number = output::WriteAll(file, text);
  if (number == 0) return {};
  Error error = Error::System(fmt::format("cannot write '{}'", path.string()), number);
  error.text += fmt::format("{}; free space, or choose another folder with logs.dir", then);
  return error;
}

}  // namespace

Status Record::WritePlan(const plan::Plan& plan, const std::vector<std::string>& environment) const {
  std::map<std::string, std::string> files = plan.record;
  files["plan.json"] = plan::ToJson(plan);
  files["environment.json"] = JsonText(EnvironmentJson(environment));
  for (const auto& [name, content] : files) {
    if (Status written = dir_.Write(name, content); !written) {
      return Error{DTRUN_SYSTEM, written.error().text + "; logs.dir chooses another folder"};
    }
  }
  return {};
}

Status Record::WriteNextPlan(std::uint64_t generation, const plan::Plan& plan) const {
  return Write(generation, "plan.json", plan::ToJson(plan));
}

Status Record::WriteRuntime(std::uint64_t generation, const plan::Plan& plan,
                            const std::vector<Tokens>& tokens) const {
  // A value shared by all hosts is written once.
  Json json = Json::object();
  Json hosts = Json::object();
  for (const auto& [token, value] : tokens.front()) {
    if (token == plan::kTokenJobKey) continue;
    const bool shared = std::ranges::all_of(
        tokens, [&token = token, &value = value](const Tokens& other) { return other.at(token) == value; });
    if (shared) {
      json[NameOf(token)] = value;
      continue;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i)
      hosts[plan.hosts[i].name][NameOf(token)] = tokens[i].at(token);
  }
  if (!hosts.empty()) json["hosts"] = hosts;
  return Write(generation, "runtime.json", JsonText(json));
}

Status Record::WriteVerdict(const verdict::Story& story) const {
  return dir_.Write("verdict.json", verdict::VerdictJson(story));
}

Status Record::WriteNotStarted(const std::string& job, const Error& error) const {
  return dir_.Write("verdict.json", verdict::NotStartedJson(job, error));
}

Status Record::WriteCalls(std::uint64_t generation, const std::string& calls) const {
  return Write(generation, "calls.txt", calls);
}

Status Record::AddStacks(std::uint64_t generation, const std::string& why,
                         const std::vector<verdict::RankDoing>& ranks) const {
  const Result<UniqueFd> folder = OpenLogsOf(generation);
  if (!folder) return folder.error();
  std::string text = fmt::format("==== {}\n", why);
  for (const verdict::RankDoing& rank : ranks)
    text += fmt::format("rank {} {}\n{}\n", rank.rank, rank.Said(), rank.text);
  const std::filesystem::path path = LogsOf(generation) / verdict::kStacksFile;
  const Result<UniqueFd> file = AppendToOwnFileAt(folder->get(), path, kPrivateFile);
  if (!file) return file.error();
  return Append(file->get(), path, text);
}

Status Record::AddEvent(std::string_view line, bool anew) const {
  const std::filesystem::path path = dir_.path() / verdict::kEventsFile;
  const auto mode = FileModeIn(dir_.mode());
  if (anew) {
    events_.Reset();
    if (::renameat(dir_.descriptor(), verdict::kEventsFile, dir_.descriptor(), verdict::kEventsBefore) != 0)
      return Error::System(fmt::format("rename '{}'", path.string()), errno);
  }
  const bool first = !events_;  // if it fails, so does the plan, which ends the job
  if (anew || first) {
    Result<UniqueFd> file = MakeOwnFileAt(dir_.descriptor(), path, mode);
    if (!file) return file.error();
    events_ = *std::move(file);
  }
  return Append(events_.get(), path, line, first && !anew ? "" : kContinues);
}

std::filesystem::path Record::LogsOf(std::uint64_t generation) const {
  return generation == 0 ? dir_.path() : dir_.path() / fmt::format("generation-{}", generation);
}

Result<UniqueFd> Record::OpenLogsOf(std::uint64_t generation) const {
  if (generation > 0) {
    return EnterFolderAt(dir_.descriptor(), dir_.path(), fmt::format("generation-{}", generation),
                         dir_.mode());
  }
  UniqueFd same(::fcntl(dir_.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!same) return Error::System(fmt::format("open '{}'", dir_.path().string()), errno);
  return same;
}

Status Record::Write(std::uint64_t generation, const std::string& name, std::string_view content) const {
  const Result<UniqueFd> folder = OpenLogsOf(generation);
  if (!folder) return folder.error();
  return ReplaceOwnFile(folder->get(), LogsOf(generation), name, content, FileModeIn(dir_.mode()));
}

}  // namespace dtrun::job
