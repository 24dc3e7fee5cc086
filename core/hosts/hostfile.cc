#include "core/hosts/hostfile.h"

#include <fmt/format.h>

#include <map>
#include <variant>

#include "core/base/text.h"

namespace dtrun::hosts {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// How a line gives its slots; repeated lines of a host must use the same form.
enum class Form { kBare, kColon, kKey };

struct Line {
  HostSlots host;
  Form form = Form::kBare;
};

struct Failure {
  std::size_t at;  // offset in the line
  std::string text;
};

// Scans one line, with its comment removed.
class Scanner {
 public:
  explicit Scanner(std::string_view line) : line_(line) { SkipBlanks(); }

  bool done() const { return at_ >= line_.size(); }
  std::size_t at() const { return at_; }

  // Reads up to a blank or one of `stops`, then skips blanks.
  std::string_view Word(std::string_view stops = {}) {
    const std::size_t begin = at_;
    while (!done() && kBlanks.find(line_[at_]) == std::string_view::npos &&
           stops.find(line_[at_]) == std::string_view::npos) {
      ++at_;
    }
    const std::string_view word = line_.substr(begin, at_ - begin);
    SkipBlanks();
    return word;
  }

  bool Take(char c) {
    if (done() || line_[at_] != c) return false;
    ++at_;
    SkipBlanks();
    return true;
  }

 private:
  void SkipBlanks() {
    while (!done() && kBlanks.find(line_[at_]) != std::string_view::npos) ++at_;
  }
  std::string_view line_;
  std::size_t at_ = 0;
};

std::optional<Failure> ParseAttributes(Scanner& scanner, Line* line) {
  std::optional<int> slots, most;
  while (!scanner.done()) {
    const std::size_t at = scanner.at();
    const std::string_view key = scanner.Word("=");
    const bool is_slots = key == "slots";
    const bool is_most = key == "max_slots" || key == "max-slots";
    if (!is_slots && !is_most) {
      const auto nearest = Nearest(key, {"slots", "max_slots"});
      return Failure{at, fmt::format("unknown word '{}'; {}", key,
                                     nearest ? fmt::format("did you mean '{}'?", *nearest)
                                             : std::string("a line is 'node0 slots=4' or 'node0:4'"))};
    }
    if (!scanner.Take('=')) return Failure{scanner.at(), fmt::format("'=' expected after '{}'", key)};
    const std::size_t value_at = scanner.at();
    auto number = ParseSlots(scanner.Word());
    if (!number) return Failure{value_at, number.error().text};
    std::optional<int>& target = is_slots ? slots : most;
    if (target) return Failure{at, fmt::format("'{}' is given twice", key)};
    if (is_slots && line->form == Form::kColon) {
      return Failure{at, fmt::format("'{}' has its slots after the colon already", line->host.name)};
    }
    target = *number;
    if (is_slots) line->form = Form::kKey;
  }
  if (!slots) slots = line->host.slots;
  if (slots && most && *most < *slots) {
    return Failure{
        0, fmt::format("max_slots={} is less than the {} slots of '{}'", *most, *slots, line->host.name)};
  }
  line->host.slots = slots ? slots : most;
  if (most && line->form == Form::kBare) line->form = Form::kKey;
  return std::nullopt;
}

std::variant<Line, Failure> ParseLine(std::string_view text) {
  Scanner scanner(text);
  const std::size_t at = scanner.at();
  Line line;
  auto host = ParseHost(scanner.Word());
  if (!host) return Failure{at, host.error().text};
  line.host = std::move(*host);
  if (line.host.slots) line.form = Form::kColon;
  if (auto failure = ParseAttributes(scanner, &line)) return std::move(*failure);
  return line;
}

struct Seen {
  std::size_t index;  // into the hosts
  int line;           // the first one
  Form form;
};

// Adds a repeated host's slots, or returns why they conflict.
std::optional<std::string> Merge(const Line& line, Seen& seen, HostSlots* host) {
  if (line.form == Form::kKey || line.form != seen.form) {
    return fmt::format("host '{}' is in line {} already; give all its slots in one line", host->name,
                       seen.line);
  }
  const int sum = host->slots.value_or(1) + line.host.slots.value_or(1);
  if (sum > kMaxSlots) return fmt::format("host '{}' has more than {} slots in all", host->name, kMaxSlots);
  host->slots = sum;
  return std::nullopt;
}

}  // namespace

Result<std::vector<HostSlots>> ParseHostfile(std::string_view text, std::string_view name) {
  std::vector<HostSlots> hosts;
  std::map<std::string, Seen> seen;  // by the name in lower case
  int number = 0;
  const auto fail = [&](std::size_t at, std::string_view cause) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{}:{}:{}: {}", name, number, at + 1, cause)};
  };
  for (std::string_view line : LinesOf(text)) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) continue;
    auto parsed = ParseLine(line);
    if (const auto* failure = std::get_if<Failure>(&parsed)) return fail(failure->at, failure->text);
    Line& found = std::get<Line>(parsed);
    const auto [before, fresh] =
        seen.emplace(Lowercase(found.host.name), Seen{hosts.size(), number, found.form});
    if (!fresh) {
      if (auto cause = Merge(found, before->second, &hosts[before->second.index])) return fail(begin, *cause);
      continue;
    }
    if (hosts.size() == kMaxHosts) return fail(begin, fmt::format("more than {} hosts", kMaxHosts));
    hosts.push_back(std::move(found.host));
  }
  if (hosts.empty()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{}: no host in it; write a host per line, as 'node0 slots=4'", name)};
  }
  return hosts;
}

}  // namespace dtrun::hosts
