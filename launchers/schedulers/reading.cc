#include "launchers/schedulers/reading.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <sstream>
#include <unordered_set>

namespace dtrun::schedulers {
namespace {

constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMostBytes = 16 << 20;  // 65536 hosts with long names

// A value as a message shows it.
std::string Shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return "'" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

constexpr std::size_t kMaxDigits = 9;  // numbers below fit an int

[[noreturn]] void Refuse(std::string_view text, const std::string& cause) {
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT, Shown(text) + ": " + cause);
}

std::string MoreHosts() { return "more than " + std::to_string(kMaxHosts) + " hosts"; }

std::optional<int> ShortNumber(std::string_view text) {
  return text.empty() || text.size() > kMaxDigits ? std::nullopt : NumberOf(text);
}

// Splits at commas outside of brackets. Empty parts stay.
std::vector<std::string_view> SplitOutside(std::string_view text) {
  std::vector<std::string_view> parts;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string Padded(int number, std::size_t width) {
  std::string text = std::to_string(number);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// Adds what one element of a bracket stands for: "07-09", "3", "a".
void AddElement(std::string_view whole, std::string_view element, std::vector<std::string>* out) {
  if (element.empty()) Refuse(whole, "an empty element in brackets");
  const std::size_t dash = element.find('-');
  const auto first = ShortNumber(element.substr(0, dash));
  if (dash == std::string_view::npos || !first) {
    out->emplace_back(element);
    return;
  }
  const std::string range = "range '" + std::string(element.substr(0, 2 * kMaxDigits + 1)) + "'";
  const auto last = ShortNumber(element.substr(dash + 1));
  if (!last)
    Refuse(whole, range + " has no last number of at most " + std::to_string(kMaxDigits) + " digits");
  if (*last < *first) Refuse(whole, range + " runs backwards");
  if (out->size() + static_cast<std::size_t>(*last - *first) >= kMaxHosts)
    Refuse(whole, "brackets with " + MoreHosts());
  for (int i = *first; i <= *last; ++i) out->push_back(Padded(i, dash));
}

std::size_t LongestOf(const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  return longest;
}

// Every name so far, followed by every ending.
void Multiply(std::string_view whole, const std::vector<std::string>& endings,
              std::vector<std::string>* names) {
  if (names->size() * endings.size() > kMaxHosts) Refuse(whole, MoreHosts());
  if (LongestOf(*names) + LongestOf(endings) > kMaxNameBytes)
    Refuse(whole, "a name of more than " + std::to_string(kMaxNameBytes) + " characters");
  std::vector<std::string> out;
  for (const std::string& name : *names) {
    for (const std::string& ending : endings) out.push_back(name + ending);
  }
  *names = std::move(out);
}

std::vector<std::string> ExpandItem(std::string_view item) {
  if (item.empty()) Refuse(item, "an empty name between commas");
  std::vector<std::string> names = {""};
  for (std::string_view rest = item; !rest.empty();) {
    std::vector<std::string> endings;
    if (rest.front() == '[') {
      const std::size_t close = rest.find(']');
      if (close == std::string_view::npos) Refuse(item, "a '[' is not closed");
      for (const std::string_view element : SplitOutside(rest.substr(1, close - 1)))
        AddElement(item, element, &endings);
      rest.remove_prefix(close + 1);
    } else {
      endings.emplace_back(rest.substr(0, rest.find('[')));
      rest.remove_prefix(endings.back().size());
    }
    Multiply(item, endings, &names);
  }
  for (const std::string& name : names) {
    if (!IsHostName(name)) Refuse(item, "'" + name + "' is not a host name");
  }
  return names;
}

}  // namespace

std::string Reading::FirstSet(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (Find(name)) return name;
  }
  return names.front();
}

std::string Reading::Sign(const std::vector<std::string>& names, const std::string& next_step) const {
  std::string name = FirstSet(names);
  if (Find(name)) return name;
  throw sdk::Failure(DTRUN_NOT_FOUND, name + " is unset; " + next_step);
}

std::optional<std::string> Reading::Find(const std::string& name) const {
  const std::optional<std::string> value = query_.Variable(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::string Reading::Text(const std::string& name) {
  if (auto text = Find(name)) return *std::move(text);
  Fail(name + " is unset");
  return {};
}

int Reading::Number(const std::string& name, int least, int most) {
  if (Find(name)) return MaybeNumber(name, least, most).value_or(least);
  Fail(name + " is unset");
  return least;
}

std::optional<int> Reading::MaybeNumber(const std::string& name, int least, int most) {
  const std::optional<std::string> text = Find(name);
  if (!text) return std::nullopt;
  const std::optional<int> number = NumberOf(*text);
  if (number && *number >= least && *number <= most) return number;
  Fail(name + "=" + Shown(*text) + " is not a number " +
       (most == kAny ? "of at least " + std::to_string(least)
                     : "from " + std::to_string(least) + " to " + std::to_string(most)));
  return std::nullopt;
}

void Reading::Disagree(const std::string& one, const std::string& other) {
  const auto said = [&](const std::string& name) { return name + " says " + Find(name).value_or("nothing"); };
  Fail(said(one) + ", " + said(other));
}

void Reading::Expect(const std::string& name, int expected, const std::string& because) {
  const auto number = MaybeNumber(name, 0);
  if (number && *number != expected) Fail(name + " says " + std::to_string(*number) + ", but " + because);
}

std::string Reading::FileOf(const std::string& name) {
  const std::string path = Text(name);
  if (path.empty()) return {};
  try {
    return ReadFile(path);
  } catch (const sdk::Failure& failure) {
    Fail(name + ": " + failure.what());
    return {};
  }
}

void Reading::End() const {
  if (problems_.empty()) return;
  std::string all;
  for (const std::string& problem : problems_) all += (all.empty() ? "" : "; ") + problem;
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                     all + "; start dtrun where the scheduler has set its variables, or unset them");
}

std::optional<int> NumberOf(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 && text.front() != '-' ? std::optional(number) : std::nullopt;
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) out.push_back(line);
  }
  return out;
}

std::string ReadFile(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw sdk::Failure(DTRUN_SYSTEM, "'" + path + "': " + why);
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct Close {
    int file;
    ~Close() {
      if (file >= 0) ::close(file);
    }
  } const close{file};
  struct stat info {};
  if (file < 0 || ::fstat(file, &info) != 0) fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail("it is not a regular file");
  std::string text;
  char block[16384];
  for (;;) {
    const ssize_t size = ::read(file, block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail(std::strerror(errno));
    if (size == 0) return text;
    text.append(block, static_cast<std::size_t>(size));
    if (text.size() > kMostBytes) fail("it is larger than 16 MiB");
  }
}

bool IsHostName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

void SlotList::Add(const std::string& host, int slots) {
  const auto [found, added] = index_.try_emplace(host, hosts_.size());
  if (added) hosts_.push_back({host, 0});
  std::optional<int>& sum = hosts_[found->second].slots;
  const int most = std::numeric_limits<int>::max();
  sum = slots > most - *sum ? most : *sum + slots;
}

void CheckHosts(const std::vector<sdk::AllocatedHost>& hosts, const std::string& source, Reading& reading) {
  if (hosts.empty()) return reading.Fail(source + " names no host");
  if (hosts.size() > kMaxHosts) {
    return reading.Fail(source + " names " + std::to_string(hosts.size()) + " hosts; at most " +
                        std::to_string(kMaxHosts) + " are supported");
  }
  std::unordered_set<std::string_view> names;
  for (const sdk::AllocatedHost& host : hosts) {
    if (!IsHostName(host.name)) return reading.Fail(source + ": " + Shown(host.name) + " is not a host name");
    if (!names.insert(host.name).second)
      return reading.Fail(source + " names host '" + host.name + "' twice");
    const int slots = host.slots.value_or(1);
    if (slots >= 1 && slots <= kMaxSlots) continue;
    return reading.Fail(source + ": host '" + host.name + "' has " + std::to_string(slots) +
                        " slots, which is not from 1 to " + std::to_string(kMaxSlots));
  }
}

std::vector<sdk::AllocatedHost> HostPerLine(Reading& reading, const std::string& name) {
  SlotList hosts;
  for (const std::string& line : LinesOf(reading.FileOf(name))) hosts.Add(WordsOf(line).front(), 1);
  return hosts.Take();
}

sdk::Allocation OnceFor(std::vector<sdk::AllocatedHost> hosts, const std::string& evidence,
                        const std::string& sharing) {
  sdk::Allocation out;
  out.hosts = std::move(hosts);
  if (!out.hosts.empty()) out.root_address = out.hosts[0].name;
  out.evidence = evidence;
  out.sharing = sharing;
  return out;
}

std::vector<sdk::ConnectCommand> OneEach(const sdk::ConnectQuery& query,
                                         const std::vector<std::string>& before,
                                         const std::vector<std::string>& after) {
  std::vector<sdk::ConnectCommand> commands;
  const std::vector<std::string> hosts = query.hosts(), argv = query.argv();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    sdk::ConnectCommand command;
    command.argv = before;
    command.argv.push_back(hosts[i]);
    command.argv.insert(command.argv.end(), after.begin(), after.end());
    for (const std::string& word : command.argv) command.trial += word + " ";
    command.trial += "hostname";
    command.argv.insert(command.argv.end(), argv.begin(), argv.end());
    command.hosts = {i};
    commands.push_back(std::move(command));
  }
  return commands;
}

std::vector<std::string> ExpandNodelist(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view item : SplitOutside(text)) {
    std::vector<std::string> part = ExpandItem(item);
    if (names.size() + part.size() > kMaxHosts) Refuse(item, MoreHosts());
    std::move(part.begin(), part.end(), std::back_inserter(names));
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    Refuse(text, "host '" + *twice + "' is in it twice");
  return names;
}

std::vector<int> ExpandCounts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string_view item : SplitOutside(text)) {
    const std::size_t open = item.find("(x");
    const auto count = ShortNumber(item.substr(0, open));
    std::optional<int> times = 1;
    if (open != std::string_view::npos) {
      times = item.back() == ')' ? ShortNumber(item.substr(open + 2, item.size() - open - 3)) : std::nullopt;
    }
    if (!count || !times || *times < 1) Refuse(item, "not a count per node, such as '4' or '4(x2)'");
    if (counts.size() + static_cast<std::size_t>(*times) > kMaxHosts)
      Refuse(item, "counts of " + MoreHosts());
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
  }
  return counts;
}

std::string CompressCounts(const std::vector<int>& counts) {
  std::string out;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto last = std::find_if(first, counts.end(), [&](int count) { return count != *first; });
    out += (out.empty() ? "" : ",") + std::to_string(*first);
    if (last - first > 1) out += "(x" + std::to_string(last - first) + ")";
    first = last;
  }
  return out;
}

}  // namespace dtrun::schedulers
