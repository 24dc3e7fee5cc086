#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

#include "core/control/client.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"
#include "tools/dtrun/explain_run.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kQuiet{5};

// Whether a rank has made or ended a recorded call between the two looks.
bool GoesOn(const std::vector<verdict::RankDoing>& before, const std::vector<verdict::RankDoing>& after) {
  return std::ranges::any_of(after, [&](const verdict::RankDoing& now) {
    const auto then = std::ranges::find(before, now.rank, &verdict::RankDoing::rank);
    if (then == before.end() || !then->call || !now.call) return false;
    return now.call->number != then->call->number || now.call->under_way != then->call->under_way;
  });
}

}  // namespace

Result<LiveLook> LookAtLive(const fs::path& folder) {
  control::Question question{.what = control::What::kPlaces, .recorders = true, .straggler = true};
  auto answer = control::AskJob(folder, question, control::kPlacesLimit);
  if (!answer) return answer.error();
  for (const verdict::RankDoing& doing : answer->places)
    if (!doing.in_source) question.native.push_back(doing.rank);
  if (answer->quiet >= kQuiet && !question.native.empty()) {
    // Native stacks of a job that goes on are of several moments.
    auto closer = control::AskJob(folder, question, control::kPlacesLimit);
    if (closer && !GoesOn(answer->places, closer->places)) answer = std::move(closer);
  }
  std::error_code none;
  return LiveLook{*std::move(answer), fs::proximate(folder, none).string()};
}

std::string StateOf(const LiveLook& live) {
  const control::Answer& answer = live.answer;
  const std::string age = verdict::FormatElapsed(answer.age);
  std::string text =
      answer.state == "running" ? "running for " + age : fmt::format("{}, begun {} ago", answer.state, age);
  if (answer.generation > 0) text += fmt::format(" in generation {}", answer.generation);
  if (answer.quiet >= kQuiet) {
    text += fmt::format(", without output for {}", verdict::FormatElapsed(answer.quiet));
  }
  return text;
}

std::string ToText(const LiveLook& live) {
  std::string places = verdict::PlacesText(live.answer.places);
  if (!live.answer.joining.empty()) return fmt::format("  {:<10} {}\n", "hosts", live.answer.joining);
  if (places.empty()) return {};
  std::vector<int> exited;
  for (const control::RankNow& process : live.answer.ranks) {
    for (int i = 0; process.ended && i < process.count; ++i) exited.push_back(process.rank + i);
  }
  if (!exited.empty()) places += "; " + verdict::ExitedText(exited);
  std::string out;
  const auto line = [&out](const char* topic, const std::string& text) {
    if (!text.empty()) fmt::format_to(std::back_inserter(out), "  {:<10} {}\n", topic, text);
  };
  line("now", places);
  // Of a job that makes progress, one look may contradict what all of them say.
  const auto is_late = [&](const verdict::RankDoing& doing) {
    return doing.stand == stacks::Stand::kElsewhere && doing.rank != live.answer.straggler->rank;
  };
  const bool agrees = !live.answer.straggler || std::ranges::none_of(live.answer.places, is_late);
  const bool quiet = live.answer.quiet >= kQuiet;
  if (agrees || quiet) line("", verdict::WhoWaitsText(live.answer.places, exited, quiet));
  if (live.answer.straggler) line("", verdict::StragglerText(*live.answer.straggler, true));
  line("stacks", "dtrun stacks " + live.folder);
  return out;
}

Json ToJson(const LiveLook& live) {
  Json places = Json::array();
  for (const verdict::RankDoing& doing : live.answer.places)
    places.push_back({{"rank", doing.rank}, {"place", doing.Said()}});
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  return {{"state", live.answer.state},
          {"joining", live.answer.joining.empty() ? Json(nullptr) : Json(live.answer.joining)},
          {"generation", live.answer.generation},
          {"age_seconds", seconds(live.answer.age)},
          {"quiet_seconds", seconds(live.answer.quiet)},
          {"straggler", live.answer.straggler ? Json(verdict::StragglerText(*live.answer.straggler, true))
                                              : Json(nullptr)},
          {"places", places}};
}

}  // namespace dtrun::cli
