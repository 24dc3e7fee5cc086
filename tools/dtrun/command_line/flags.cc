#include "tools/dtrun/command_line/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>

#include "core/base/text.h"
#include "tools/dtrun/command_line/flag_rows.h"

namespace dtrun::cli {
namespace {

using enum Reading;

constexpr std::string_view kMpirunFamily = "mpirun";

std::array<std::span<const ForeignFlag>, 7> Tables() {
  return {CountFlags(), TorchrunFlags(),  MpiFlags(),    SchedulerFlags(),
          OtherFlags(), FrameworkFlags(), HorovodFlags()};
}

bool Lists(const ForeignFlag& row, std::string_view name) {
  return std::ranges::any_of(Split(row.names, ' '), [&](std::string_view listed) {
    if (!listed.ends_with('*')) return !listed.empty() && listed == name;
    listed.remove_suffix(1);
    return name.starts_with(listed);
  });
}

void Replace(std::string_view placeholder, const std::string& by, std::string* text) {
  for (std::size_t at = text->find(placeholder); at != text->npos;
       at = text->find(placeholder, at + by.size()))
    text->replace(at, placeholder.size(), by);
}

// Converts `--mca NAME VALUE` if it is for mpirun itself; nullopt: it is for the ranks.
std::optional<Result<ForeignWords>> ReadMpirunParameter(const std::string& flag, const std::string& name,
                                                        const std::string& value, bool all) {
  const std::string typed = flag + " " + name;
  const ForeignFlag* row = FindMpirunParameter(name);
  if (row == nullptr && !all) return std::nullopt;
  if (row == nullptr)
    return ForeignWords{
        {}, fmt::format("{} has no effect: it is for mpirun, and dtrun starts the ranks", typed), true};
  if (row->reading == kOption)
    return ForeignWords{{std::string(row->text), value}, fmt::format("{} is read as {} {}", typed, row->text, value)};
  return ReadForeign(*row, typed, [&]() -> Result<std::string> { return MpirunValue(*row, value); });
}

}  // namespace

std::string HostCount(const std::string& value) {
  const std::size_t colon = value.find(':');
  const std::string number = value.substr(0, colon);
  if (colon != value.npos && value.substr(colon + 1) != number) return {};
  return IsDigits(number) ? number : std::string();
}

std::string AdviceOf(const ForeignFlag& flag, const std::string& value) {
  std::string text(flag.text);
  Replace("{s}", IsDigits(value) ? value + "s" : value, &text);
  Replace("{}", value, &text);
  return text;
}

std::string Owners(const ForeignFlag& flag) {
  std::string text(flag.launcher);
  if (const std::size_t comma = text.rfind(", "); comma != text.npos) text.replace(comma, 2, " and ");
  return text;
}

bool IsOf(const ForeignFlag& flag, std::string_view of) {
  const auto lists = [&](std::string_view name) {
    return flag.launcher.find(name) != std::string_view::npos;
  };
  return lists(of) || (of == kMpirunFamily && lists("mpiexec"));
}

const ForeignFlag* FindForeignFlag(std::string_view flag, std::string_view of) {
  std::string name(flag);
  std::ranges::replace(name, '_', '-');
  const auto find = [&](const auto& suits) -> const ForeignFlag* {
    for (const auto& table : Tables()) {
      for (const ForeignFlag& row : table) {
        if (suits(row) && Lists(row, name)) return &row;
      }
    }
    return nullptr;
  };
  const auto own = [&](const ForeignFlag& row) { return !of.empty() && IsOf(row, of); };
  const auto any = [](const ForeignFlag& row) { return !row.certain; };
  const auto mpis = [&](const ForeignFlag& row) {
    return (own(row) || any(row)) && IsOf(row, kMpirunFamily);
  };
  if (const ForeignFlag* found = find(own)) return found;
  if (const ForeignFlag* found = find(any)) return found;
  if (name.size() < 3 || name.starts_with("--")) return nullptr;
  name.insert(0, 1, '-');  // Open MPI's long flags have one or two dashes
  return find(mpis);
}

const ForeignFlag* FindMpirunParameter(std::string name) {
  std::ranges::replace(name, '_', '-');
  const auto rows = MpirunParameters();
  const auto row = std::ranges::find_if(rows, [&](const ForeignFlag& one) { return Lists(one, name); });
  if (row == rows.end()) return nullptr;
  const bool as_flag = row->reading == kOption;
  const ForeignFlag* flag = as_flag ? FindForeignFlag(row->text) : nullptr;
  return flag == nullptr ? &*row : flag;
}

std::string MpirunValue(const ForeignFlag& parameter, const std::string& value) {
  if (parameter.text != "cluster.remote_shell") return value;
  std::string words;
  for (const std::string_view word : Split(std::string_view(value).substr(0, value.find(':')), ' ')) {
    if (!word.empty()) words += fmt::format("{}\"{}\"", words.empty() ? "" : ", ", word);
  }
  return "[" + words + "]";
}

std::vector<std::string> ForeignNames() {
  std::vector<std::string> names;
  for (const auto& table : Tables()) {
    for (const ForeignFlag& flag : table) {
      if (flag.certain || flag.reading == kRefused || flag.reading == kUnread || flag.reading == kMpirun ||
          flag.reading == kModule)
        continue;
      for (const std::string_view name : Split(flag.names, ' ')) {
        if (name.starts_with("--")) names.emplace_back(name);
      }
    }
  }
  return names;
}

Result<ForeignWords> ReadForeign(const ForeignFlag& flag, const std::string& name,
                                 const std::function<Result<std::string>()>& value) {
  const auto set = [&](const std::string& setting) {
    return ForeignWords{{"--set", setting}, fmt::format("{} is read as --set {}", name, setting)};
  };
  const auto nothing = [&](std::string_view why) {
    return ForeignWords{{}, fmt::format("{} has no effect: {}", name, why), true};
  };
  const auto refused = [&] {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} is a flag of {}; {}", name, Owners(flag), flag.text)};
  };
  if (flag.reading == kRefused) {
    const bool repeats = flag.text.find('{') != flag.text.npos;
    const Result<std::string> given = repeats ? value() : std::string();
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("{} is a flag of {}; {}", name, Owners(flag),
                                                     AdviceOf(flag, given ? *given : "VALUE"))};
  }
  if (flag.reading == kUnread) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} is a flag of {} that dtrun does not read; {}", name, Owners(flag),
                             flag.text.empty() ? "leave it out" : flag.text)};
  }
  if (flag.reading == kFixed) return set(std::string(flag.text));
  if (flag.reading == kNothing) return nothing(flag.text);
  const Result<std::string> given = value();
  if (!given) return given.error();
  if (flag.reading == kMpirun) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("{} is a flag of {}; {}; for mpirun's own mapping: --set launcher.name=mpirun --set "
                    "'launcher.options.arguments=[\"{}\",\"{}\"]'",
                    name, Owners(flag), flag.text, name, *given)};
  }
  if (flag.reading == kHostCount) {
    const std::string count = HostCount(*given);
    if (count.empty()) return refused();
    return ForeignWords{{"-N", count}, fmt::format("{} is read as -N {}", name, count)};
  }
  if (flag.reading == kSetting) return set(fmt::format("{}={}", flag.text, *given));
  if (flag.reading == kNothingOf) return nothing(flag.text);
  if (flag.reading == kDefault) {
    const auto harmless = Split(flag.words, ' ');
    if (std::ranges::count(harmless, *given) > 0) return nothing(flag.why);
    return refused();
  }
  if (flag.reading == kPair) {
    const Result<std::string> second = value();
    const auto form = [&](const std::string& of) {
      return fmt::format("{} takes a name and a value: {} {} VALUE", name, name, of);
    };
    if (given->starts_with('-')) return Error{DTRUN_INVALID_ARGUMENT, form("NAME")};
    if (!second) return Error{DTRUN_INVALID_ARGUMENT, form(*given)};
    if (IsOf(flag, "mpirun")) {
      const bool all = flag.text == kMpirunsOwn;
      if (auto own = ReadMpirunParameter(name, *given, *second, all)) return *std::move(own);
    }
    const std::string setting = fmt::format("{}{}={}", flag.text, *given, *second);
    if (second->size() > 1 && (*second)[0] == '-' && !IsDigit((*second)[1])) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("{}; if '{}' is the value: --set {}", form(*given), *second, setting)};
    }
    return set(setting);
  }
  if (flag.reading == kWord) {
    std::string expected;
    for (const std::string_view word : Split(flag.words, ' ')) {
      const std::string_view there = word.substr(0, word.find('='));
      if (there == *given) return set(fmt::format("{}={}", flag.text, word.substr(there.size() + 1)));
      expected += fmt::format("{}{}", expected.empty() ? "" : ", ", there);
    }
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} {}: dtrun reads {}; {}", name, *given, expected,
                             flag.why.empty() ? fmt::format("else see: dtrun config explain {}", flag.text)
                                              : flag.why)};
  }
  if (given->find('=') == std::string::npos) {
    if (std::getenv(given->c_str()) != nullptr)
      return ForeignWords{{}, fmt::format("{} {} is so already: {}", name, *given, kInherited)};
    return ForeignWords{
        {},
        fmt::format("{} {}: this variable is not set here, so ranks do not have it; export it, "
                    "or write {} {}=VALUE",
                    name, *given, name, *given),
        true};
  }
  return set("job.env." + *given);
}

}  // namespace dtrun::cli
