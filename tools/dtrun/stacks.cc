#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/standard_output.h"
#include "core/control/client.h"
#include "core/control/stacks_text.h"
#include "core/output/display.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"
#include "tools/dtrun/find_run.h"
#include "tools/dtrun/reading.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

struct StacksArguments {
  std::string job;
  std::string ranks;  // "0,4-7"; empty: all
  bool native = false;
  bool all_threads = false;
  bool json = false;
};

// Ranks that run and could not be read.
std::vector<int> Unread(const control::Answer& answer, const std::vector<int>& wanted) {
  std::vector<int> ranks;
  for (const control::RankNow& one : answer.ranks) {
    const bool read = std::ranges::any_of(
        answer.places, [&](const verdict::RankDoing& doing) { return one.Holds(doing.rank); });
    const bool asked =
        wanted.empty() || std::ranges::any_of(wanted, [&](int rank) { return one.Holds(rank); });
    if (!one.ended && !read && asked) ranks.push_back(one.rank);
  }
  return ranks;
}

Json StacksJson(const control::Answer& answer) {
  Json ranks = Json::array();
  for (const verdict::RankDoing& doing : answer.places) {
    Json one = {{"rank", doing.rank},
                {"place", doing.phrase},
                {"beside", doing.beside},
                {"stacks", doing.text},
                {"processor_ms", doing.processor_ms},
                {"bytes", doing.bytes}};
    if (const control::RankNow* const process = answer.Find(doing.rank)) {
      one["host"] = process->host;
      one["pid"] = process->pid;
    }
    ranks.push_back(std::move(one));
  }
  return {{"job", answer.job}, {"state", answer.state}, {"generation", answer.generation}, {"ranks", ranks}};
}

// Of a job that does not answer, most likely because it has ended.
int RefuseEnded(const std::filesystem::path& run, const std::string& why) {
  std::error_code none;
  const std::filesystem::path kept = run / verdict::kStacksFile;
  return Refuse(why + (std::filesystem::exists(kept, none)
                           ? "; the last stacks that were taken: " + kept.string()
                           : "; dtrun explain tells how a job ended"));
}

int Stacks(const StacksArguments& arguments) {
  std::vector<int> wanted;  // empty: all
  if (!arguments.ranks.empty()) {
    const auto ranks = ReadNumberList(arguments.ranks);
    if (!ranks)
      return Refuse(fmt::format("--rank: '{}' is not a list of ranks; write 0,4-7", arguments.ranks));
    wanted = *ranks;
  }
  const auto is_wanted = [&wanted](int rank) {
    return wanted.empty() || std::ranges::count(wanted, rank) != 0;
  };
  const auto run = FindRun(arguments.job, Needs::kLiveRun);
  if (!run) return Refuse(run.error().text);
  control::Question question{.what = control::What::kPlaces, .recorders = true};
  if (arguments.native) {
    const auto state = control::AskJob(*run, {}, control::kPlacesLimit);
    if (!state) return RefuseEnded(*run, state.error().text);
    for (const control::RankNow& one : state->ranks) {
      for (int rank = one.rank; rank < one.rank + one.count; ++rank) {
        if (is_wanted(rank)) question.native.push_back(rank);
      }
    }
  }
  auto answer = control::AskJob(*run, question, control::kPlacesLimit);
  if (!answer) return RefuseEnded(*run, answer.error().text);
  if (answer->ranks.empty())
    return Refuse(
        fmt::format("job '{}' runs no ranks at this moment; it is {}", answer->job, answer->StateText()));
  for (const int rank : wanted) {
    if (answer->Find(rank) == nullptr) {
      return Refuse(fmt::format("--rank: job '{}' has no rank {}; the last one is {}", answer->job, rank,
                                answer->ranks.back().rank + answer->ranks.back().count - 1));
    }
  }
  const std::vector<int> unread = Unread(*answer, wanted);
  std::erase_if(answer->places, [&](const verdict::RankDoing& doing) { return !is_wanted(doing.rank); });
  if (arguments.json) {
    WriteOutput(JsonDocument(1, StacksJson(*answer)));
  } else {
    WriteForReading(output::TamedMessage(control::StacksText(*answer, arguments.all_threads)));
  }
  const auto has_line = [](const verdict::RankDoing& doing) { return doing.in_source; };
  if (!arguments.native && !answer->places.empty() && std::ranges::none_of(answer->places, has_line))
    PrintMessage("dtrun: --native shows the frames of C and C++ programs\n");
  std::vector<int> exited;
  for (const int rank : wanted)
    if (answer->Find(rank)->ended) exited.push_back(rank);
  if (!exited.empty()) PrintMessage("dtrun: {}: no stacks\n", verdict::ExitedText(exited));
  if (unread.empty()) return 0;
  PrintMessage(
      "dtrun: {} gave no stacks: the host did not answer in time, or does not let dtrun read processes\n",
      verdict::FoldRanks(unread));
  return 1;
}

}  // namespace

void AddStacks(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<StacksArguments>();
  CLI::App* verb =
      app.add_subcommand("stacks", "Where each rank of a running job is: all threads, on all hosts");
  AddJobWord(verb, &own->job,
             "A job's name or run folder; none: the newest one of this folder, or your only live job");
  verb->add_option("--rank", own->ranks, "Of these ranks alone: 0,4-7")->type_name("LIST");
  verb->add_flag("--native", own->native,
                 "Also C and C++ frames, by eu-stack or gdb, which stop each process for a moment");
  verb->add_flag("--all-threads", own->all_threads, "Also threads without Python frames, one per line");
  verb->add_flag("--json", own->json, "Machine-readable");
  verb->footer(
      "Reads the processes from outside; without --native nothing is stopped. Exit code: 0; 1 when a rank "
      "could not "
      "be read; 2 when there is no such job.");
  to->push_back({verb, [own] { return Stacks(*own); }});
}

}  // namespace dtrun::cli
