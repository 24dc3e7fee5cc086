#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/own_file.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/trace/run.h"
#include "tools/dtrun/trace/torch.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

struct TraceArguments {
  std::string job;
  std::string out;
  std::vector<std::string> torch;
};

constexpr std::size_t kMostMissingShown = 10;

int Trace(const TraceArguments& arguments) {
  const std::filesystem::path out(arguments.out);
  if (arguments.out.ends_with(".gz"))
    return Refuse(
        fmt::format("--out '{}': this dtrun does not compress; name it .json and use gzip", arguments.out));
  const auto run = FindRun(arguments.job);
  if (!run) return Refuse(run.error().text);
  if (Status may = MayRead(*run); !may) return Refuse(may.error().text);
  std::error_code none;
  const std::filesystem::path real = std::filesystem::canonical(*run, none);
  Result<trace::Timeline> timeline = trace::ReadRunFolder(real.empty() ? *run : real);
  if (!timeline) return Refuse(timeline.error().text);
  const auto files = trace::TorchFiles(arguments.torch);
  if (!files) return Refuse(files.error().text);
  for (const std::filesystem::path& file : *files)
    if (Status added = trace::AddTorch(file, &*timeline); !added) return Refuse(added.error().text);
  timeline->document.about["dtrun"] = DTRUN_VERSION;
  timeline->document.about["missing"] = timeline->missing;
  if (Status written = WriteNamedFile(out, timeline->document.Text(timeline->began)); !written)
    return Refuse(fmt::format("--out: {}", written.error().text));
  for (std::size_t i = 0; i < std::min(timeline->missing.size(), kMostMissingShown); ++i)
    PrintMessage("dtrun: {}\n", timeline->missing[i]);
  if (timeline->missing.size() > kMostMissingShown)
    PrintMessage("dtrun: {} more are in the file, under otherData.missing\n",
                 timeline->missing.size() - kMostMissingShown);
  if (timeline->ranks_traced == 0)
    PrintMessage(
        "dtrun: the timeline has no calls of ranks: --set trace.enabled=true notes those that use libdtrun; "
        "--torch adds those that torch.profiler has noted\n");
  if (std::filesystem::is_regular_file(out, none))
    PrintOutput("{}: open it in ui.perfetto.dev\n", Printable(out.string()));
  return 0;
}

}  // namespace

void AddTrace(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<TraceArguments>();
  CLI::App* trace = app.add_subcommand("trace", "One timeline of a run for ui.perfetto.dev and Chrome");
  AddJobWord(trace, &own->job,
             "A job's name, a run directory or a folder above it; none: the newest run started in this "
             "folder, or your only live job");
  trace->add_option("-o,--out", own->out, "The file to write, in the Trace Event Format (JSON)")
      ->type_name("FILE")
      ->required();
  trace->add_option("--torch", own->torch, "Traces of torch.profiler to merge, or folders of them")
      ->type_name("PATH");
  trace->footer(
      "Calls of ranks are in it if the job ran with trace.enabled = true. Exit code: 0; 2 for a user error.");
  to->push_back({trace, [own] { return Trace(*own); }});
}

}  // namespace dtrun::cli
