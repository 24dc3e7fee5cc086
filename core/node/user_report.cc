#include "core/node/user_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/environments/libraries.h"
#include "core/plan/plan.h"
#include "core/verdict/text.h"
#include "core/verdict/verdict.h"

namespace dtrun::node {
namespace {

constexpr std::size_t kShownBytes = 60;         // of a variable
constexpr std::size_t kShownOptionBytes = 200;  // a command is one

// Placeholders that are known only when ranks start, or differ for each rank.
bool IsFilledIn(const std::string& word) {
  return word.find_first_of("{$") != word.npos || word.find("⟦") != word.npos;
}

// Whether `argv` is `own` after an interpreter and its options.
bool IsCommand(const std::vector<std::string>& own, std::vector<std::string> argv) {
  std::erase_if(argv, [](const std::string& word) {
    return word.starts_with("--local-rank=") || word.starts_with("--local_rank=");
  });
  if (argv.size() < own.size()) return false;
  const std::size_t skipped = argv.size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::string& other = argv[skipped + i];
    if (IsFilledIn(own[i]) || IsFilledIn(other)) continue;
    if (i == 0 ? FileName(own[i]) != FileName(other) : own[i] != other) return false;
  }
  return true;
}

std::map<std::string, std::string> ThoseThatMatter(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> found;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos || !environments::MattersToRanks(std::string_view(entry).substr(0, equals)))
      continue;
    found[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return found;
}

std::string VariablesThatDiffer(const std::vector<std::string>& own, const std::vector<std::string>& given) {
  const auto here = ThoseThatMatter(own), there = ThoseThatMatter(given);
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [name, value] : here) both[name].first = "=" + Shortened(value, kShownBytes);
  for (const auto& [name, value] : there) both[name].second = "=" + Shortened(value, kShownBytes);
  std::string text;
  for (const auto& [name, values] : both) {
    if (values.first == values.second) continue;
    text += fmt::format("{}{}{} here, {} on the root", text.empty() ? "" : "; ", name,
                        values.first.empty() ? " is unset" : values.first,
                        values.second.empty() ? "unset" : values.second.substr(1));
  }
  return text;
}

}  // namespace

namespace {

std::string OptionsThatDiffer(const std::map<std::string, std::string>& own,
                              const std::map<std::string, std::string>& given) {
  std::string text;
  for (const auto& [key, value] : own) {
    const auto there = given.find(key);
    if (there != given.end() && there->second == value) continue;
    text += fmt::format("{}{} is {} here, {} on the root", text.empty() ? "" : "; ", key,
                        Shortened(value, kShownOptionBytes),
                        there == given.end() ? "not set" : Shortened(there->second, kShownOptionBytes));
  }
  return text;
}

}  // namespace

UserReport::UserReport(OwnStart own, std::vector<std::string> environment,
                       std::function<void(const std::string&)> say)
    : own_(std::move(own)), environment_(std::move(environment)), say_(std::move(say)) {}

void UserReport::Joining(const std::string& name, int port) {
  say_(fmt::format("joining the root at {} port {}", name, port));
}

void UserReport::Joined(const std::string& root, const std::string& peer) {
  root_ = root;
  say_(fmt::format("joined the root, {} ({}); waiting for the job to start", root, peer));
}

std::vector<std::string> UserReport::Prepared(const protocol::Prepare& prepare) {
  world_size_ = prepare.world_size;
  here_.ranks.clear();
  for (const plan::Process& process : prepare.processes) {
    verdict::RankFacts rank;
    rank.rank = process.rank;
    rank.count = process.rank_count;
    here_.ranks.push_back(std::move(rank));
  }
  std::vector<std::string> differences;
  if (std::exchange(compared_, true) || prepare.processes.empty()) return differences;
  const std::vector<std::string>& argv = prepare.processes.front().argv;
  if (!own_.command.empty() && !IsCommand(own_.command, argv)) {
    differences.push_back(
        fmt::format("this node was started with `{}`; the root's command runs instead: `{}`",
                    fmt::join(own_.command, " "), fmt::join(argv, " ")));
  }
  const auto processes = static_cast<int>(prepare.processes.size());
  if (own_.processes != 0 && own_.processes != processes) {
    differences.push_back(
        fmt::format("this node was started for {} rank{}; the root's command line gives it {}",
                    own_.processes, own_.processes == 1 ? "" : "s", processes));
  }
  const std::string options = OptionsThatDiffer(own_.options, prepare.options);
  if (!options.empty()) differences.push_back("the job runs with the root's options: " + options);
  if (prepare.environment.empty()) return differences;
  const std::string variables = VariablesThatDiffer(environment_, prepare.environment);
  if (!variables.empty())
    differences.push_back("ranks get the root's variables, which differ from this node's: " + variables);
  return differences;
}

void UserReport::Started(const protocol::Start& start) {
  if (const auto found = start.tokens.find(plan::kTokenRunDir); found != start.tokens.end())
    run_dir_ = found->second;
  std::vector<int> ranks;
  for (const verdict::RankFacts& rank : here_.ranks) verdict::AddRanks(rank, &ranks);
  if (ranks.empty()) return;
  say_(fmt::format("started {} of {}; the output is shown on the root, {}", verdict::FoldRanks(ranks),
                   world_size_, root_));
}

void UserReport::Ended(const protocol::Ended& ended) {
  for (verdict::RankFacts& rank : here_.ranks) {
    if (rank.rank != ended.rank) continue;
    rank.ending = ended.ending;
    rank.signal_sent = ended.signal_sent;
  }
}

void UserReport::Over() {
  std::erase_if(here_.ranks, [](const verdict::RankFacts& rank) { return !rank.ending; });
  if (here_.ranks.empty()) return;
  std::string text;
  for (const std::string& clause :
       {verdict::AlsoFailed(here_, nullptr, {}), verdict::Consequences(here_, nullptr, {}),
        verdict::Beside(here_, {}, {})}) {
    if (!clause.empty()) text += clause + "; ";
  }
  say_(fmt::format("{}the verdict is on the root, {}: on its stderr{}", text, root_,
                   run_dir_.empty() ? "" : fmt::format(" and in {}/verdict.json", run_dir_)));
}

}  // namespace dtrun::node
