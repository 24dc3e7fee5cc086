#include <fmt/format.h>

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/control/client.h"
#include "core/output/display.h"
#include "tools/dtrun/explain_run.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

struct StopArguments {
  std::string job;
  std::string grace;
};

int Stop(const StopArguments& arguments) {
  control::Question question{.what = control::What::kStop};
  if (!arguments.grace.empty()) {
    const auto grace = ParseDuration(arguments.grace);
    if (!grace) return Refuse("--grace: " + grace.error().text);
    question.grace = *grace;
  }
  const auto run = FindOnlyLiveRun(arguments.job);
  if (!run) return Refuse(run.error().text);
  const auto answer = control::AskJob(*run, question, control::kPlacesLimit);
  if (!answer) {
    const int code = Refuse(answer.error().text);
    return answer.error().code == DTRUN_TIMEOUT ? 1 : code;
  }
  const auto story = ReadRun(*run);
  const std::string verdict = story && !story->verdict.empty()
                                  ? std::string(LinesOf(story->verdict).front())
                                  : fmt::format("job '{}' has ended", answer->job);
  WriteForReading(output::TamedMessage(fmt::format("{}\n  logs: {}\n", verdict, run->string())));
  return 0;
}

}  // namespace

void AddStop(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<StopArguments>();
  CLI::App* verb = app.add_subcommand("stop", "End a running job on all its hosts, and wait for its end");
  AddJobWord(
      verb, &own->job,
      "A job's name or run folder; may be left out for your only live job, if it was started in this folder");
  verb->add_option("-t,--grace", own->grace,
                   "Time from SIGTERM to SIGKILL, instead of job.grace; 0s kills at once")
      ->type_name("TIME");
  verb->footer(
      "Exit code: 0 once the job has ended; 1 if its dtrun does not answer; 2 when there is no such job.");
  to->push_back({verb, [own] { return Stop(*own); }});
}

}  // namespace dtrun::cli
