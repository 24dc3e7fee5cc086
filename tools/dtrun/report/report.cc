#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/base/own_file.h"
#include "core/base/standard_output.h"
#include "core/output/display.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/report/page.h"
#include "tools/dtrun/report/records.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

struct ReportArguments {
  std::string job;
  std::string out;  // a file, or "-"; empty: report.html in the run folder
};

constexpr char kReportFile[] = "report.html";

// In the run folder, as private as the folder is.
Status WriteInto(const std::filesystem::path& folder, const std::string& page) {
  Result<UniqueFd> open = OpenFolder(folder);
  if (!open) return std::move(open).error();
  struct stat info {};
  if (::fstat(open->get(), &info) != 0)
    return Error::System(fmt::format("read '{}'", folder.string()), errno);
  if (info.st_uid != ::geteuid()) {  // that user's links may lead to what only this one can read
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("'{}' belongs to another user; write the report elsewhere: --out FILE", folder.string())};
  }
  const mode_t mode = FileModeIn(info.st_mode);
  Status written = ReplaceOwnFile(open->get(), folder, kReportFile, page, mode);
  if (written) return {};
  Error error = std::move(written).error();
  error.text += "; --out FILE chooses another place";
  return error;
}

int Report(const ReportArguments& arguments) {
  const auto run = FindRun(arguments.job, Needs::kRunOfThisFolder);
  if (!run) return Refuse(run.error().text);
  std::error_code none;
  const std::filesystem::path real = std::filesystem::canonical(*run, none);
  const std::filesystem::path folder = real.empty() ? *run : real;
  const auto records = report::ReadRecordsOf(folder);
  if (!records) return Refuse(records.error().text);
  const std::string page = report::Page(*records);
  for (const std::string& one : records->story.unread) PrintMessage("dtrun: {}\n", output::Tamed(one));
  const int code = records->story.unread.empty() ? 0 : kUserError;
  if (arguments.out == "-") {
    WriteOutput(page);
    return FinishOutput(code);
  }
  const Status written =
      arguments.out.empty() ? WriteInto(folder, page) : WriteNamedFile(arguments.out, page);
  if (!written) return Refuse(written.error().text);
  PrintOutput("{}\n", arguments.out.empty() ? (folder / kReportFile).string() : arguments.out);
  return FinishOutput(code);
}

}  // namespace

void AddReport(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<ReportArguments>();
  CLI::App* report = app.add_subcommand(
      "report", "Write one HTML file about a job: verdict, metrics, ranks, restarts, events, config");
  AddJobWord(report, &own->job,
             "A job's name, its run folder or a folder above it; latest, or left out: the newest");
  report
      ->add_option("-o,--out", own->out,
                   "Where to write it; - is standard output. Else report.html in the run folder")
      ->type_name("FILE")
      ->check([](const std::string& file) { return file.empty() ? "the name of the file is empty" : ""; });
  report->footer(
      "The file needs no network and has no scripts. Of a running job it tells the state of this moment. "
      "Secrets are "
      "masked as in the run folder. Exit code: 0; 2 for a user error.");
  to->push_back({report, [own] { return Report(*own); }});
}

}  // namespace dtrun::cli
