#include "core/options/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/number.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/options/text.h"

namespace dtrun::options {
namespace {

Error Expected(const Spec& spec, std::string_view found) {
  return Error::Of(DTRUN_INVALID_ARGUMENT, "expected {}; found {}", ExpectedText(spec),
                   spec.secret ? "(secret)" : found);
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  if (Trim(text).empty()) return items;
  for (const std::string_view item : Split(text, ',')) items.emplace_back(Trim(item));
  return items;
}

std::string Absolute(std::string_view text, const std::filesystem::path& folder) {
  const auto expanded = ExpandPath(text);  // ParseText has rejected paths that cannot be expanded
  return (folder / std::filesystem::path(expanded ? *expanded : text)).lexically_normal().string();
}

// Parses without checking bounds and choices; unset if the notation is wrong.
Data Read(const Spec& spec, std::string_view text, const std::filesystem::path& folder) {
  switch (spec.type) {
    case Type::kBool:
      if (text == "true" || text == "false") return text == "true";
      return {};
    case Type::kInt:
    case Type::kUint:
      if (const auto number = NumberOf<std::int64_t>(text)) return *number;
      return {};
    case Type::kFloat:
      if (const auto number = NumberOf<double>(text)) return *number;
      return {};
    case Type::kBytes:
      if (const auto bytes = ParseBytes(text)) return static_cast<std::int64_t>(*bytes);
      return {};
    case Type::kDuration:
      if (const auto duration = ParseDuration(text)) return static_cast<std::int64_t>(duration->count());
      return {};
    case Type::kCount:
      if (const auto number = NumberOf<std::int64_t>(text)) return *number;
      return std::string(text);
    case Type::kNames:
      // "cpu:gloo,cuda:nccl" is a single text.
      if (text.find(',') != text.npos && text.find(':') == text.npos) return SplitList(text);
      return std::string(text);
    case Type::kString:
    case Type::kEnum: return std::string(text);
    case Type::kPath:
      if (text.empty()) return {};
      return Absolute(text, folder);
    case Type::kList: return SplitList(text);
    case Type::kPathList: {
      std::vector<std::string> items = SplitList(text);
      for (std::string& item : items) item = Absolute(item, folder);
      return items;
    }
    case Type::kMap: {
      std::map<std::string, std::string> map;
      for (const std::string& item : SplitList(text)) {
        const std::size_t equals = item.find('=');
        if (equals == item.npos || equals == 0) return {};
        map[item.substr(0, equals)] = item.substr(equals + 1);
      }
      return map;
    }
  }
  return {};
}

Status CheckRange(const Spec& spec, const Data& data) {
  for (const bool lower : {true, false}) {
    const std::optional<std::string>& text = lower ? spec.min_text : spec.max_text;
    if (!text) continue;
    const Data bound = Read(spec, *text, {});
    if (bound.index() != 2 && bound.index() != 3) {
      return Error::Of(DTRUN_INTERNAL, "the bound {} of {} is not a {}; this is a defect of the {}",
                       Quote(*text), spec.key, TypeText(spec), spec.reader);
    }
    if (data.index() == bound.index() && (lower ? data < bound : bound < data))
      return Expected(spec, Format(spec, data));
  }
  const auto* number = std::get_if<std::int64_t>(&data);
  if (number != nullptr && *number < 0 && spec.type == Type::kUint) return Expected(spec, Format(spec, data));
  const auto* real = std::get_if<double>(&data);
  if (real != nullptr && !std::isfinite(*real)) return Expected(spec, Format(spec, data));
  return {};
}

Status CheckChoice(const Spec& spec, const std::string& word) {
  if (std::find(spec.choices.begin(), spec.choices.end(), word) != spec.choices.end()) return {};
  Error error = Expected(spec, QuoteShort(word));
  const auto nearest = Nearest(word, spec.choices);
  if (nearest && !spec.secret) error.text += fmt::format(", did you mean {}?", Quote(*nearest));
  return error;
}

Status CheckNames(const Spec& spec, const Data& data) {
  const auto* const list = std::get_if<std::vector<std::string>>(&data);
  if (list == nullptr) return {};
  const std::set<std::string> names(list->begin(), list->end());
  if (names.size() == list->size() && !names.empty() && !names.contains("")) return {};
  return Expected(spec, Format(spec, data));
}

Status CheckClean(const std::string& text) {
  const std::size_t at = FindInvalidUtf8(text);
  if (at != text.npos) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "expected UTF-8; found byte 0x{:02x} at offset {}",
                     static_cast<unsigned>(static_cast<unsigned char>(text[at])), at);
  }
  if (text.find('\0') == text.npos) return {};
  return Error{DTRUN_INVALID_ARGUMENT, "expected text without a NUL character; found one"};
}

Status CheckTexts(const Data& data) {
  if (const auto* text = std::get_if<std::string>(&data)) return CheckClean(*text);
  if (const auto* list = std::get_if<std::vector<std::string>>(&data)) {
    for (const std::string& item : *list) {
      if (Status status = CheckClean(item); !status) return status;
    }
  }
  if (const auto* map = std::get_if<std::map<std::string, std::string>>(&data)) {
    std::vector<std::string> wrong;
    for (const auto& [name, text] : *map) {
      if (name.empty()) wrong.emplace_back("the name \"\" is empty");
      if (name.find('=') != name.npos)
        wrong.push_back(fmt::format("the name {} has a '='", QuoteShort(name)));
    }
    if (!wrong.empty()) {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "expected names of one or more characters without '='; {}",
                       fmt::join(wrong, "; "));
    }
    for (const auto& [name, text] : *map) {
      if (Status status = CheckClean(name); !status) return status;
      if (Status status = CheckClean(text); !status) return status;
    }
  }
  return {};
}

// The hint after a rejected value: the likely spelling, or the maximum.
std::string Meant(const Spec& spec, std::string_view text) {
  std::string meant;
  if (spec.type == Type::kDuration) {
    meant = DurationMeant(text);
    const auto duration = ParseDuration(meant);
    const auto least = ParseDuration(spec.min_text.value_or("0s"));
    if (duration && least && *duration < *least) return "";
    if (!meant.empty() && !duration) return spec.max_text ? "" : "; the longest is 10 years, \"87600h\"";
  }
  if (spec.type == Type::kBytes) {
    meant = BytesMeant(text);
    if (!meant.empty() && !ParseBytes(meant)) return "; it must be less than \"8388608TiB\"";
  }
  if (!meant.empty()) meant = QuoteShort(meant);
  if (spec.type == Type::kBool) meant = BooleanMeant(text);
  return meant.empty() ? "" : fmt::format(", did you mean {}?", meant);
}

std::string FormatMap(const std::map<std::string, std::string>& map) {
  std::string out;
  for (const auto& [name, text] : map)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, Quote(text));
  return out.empty() ? "{}" : fmt::format("{{ {} }}", out);
}

}  // namespace

Result<Data> ParseText(const Spec& spec, std::string_view text, const std::filesystem::path& folder) {
  const bool list = spec.type == Type::kPathList;
  if (spec.type == Type::kPath || list) {
    for (const std::string& path : list ? SplitList(text) : std::vector{std::string(text)}) {
      if (const auto expanded = ExpandPath(path); !expanded) return expanded.error();
    }
  }
  Result<Data> data = Read(spec, text, folder);
  if (data->index() == 0) {
    Error error = Expected(spec, QuoteShort(text));
    if (!spec.secret) error.text += Meant(spec, text);
    return error;
  }
  if (Status status = CheckBounds(spec, *data); !status) return status.error();
  return data;
}

Status CheckBounds(const Spec& spec, const Data& data) {
  if (Status status = CheckTexts(data); !status) return status;
  if (spec.type == Type::kNames) return CheckNames(spec, data);
  const auto* word = std::get_if<std::string>(&data);
  if (word != nullptr && (spec.type == Type::kEnum || spec.type == Type::kCount))
    return CheckChoice(spec, *word);
  return CheckRange(spec, data);
}

std::string Format(const Spec& spec, const Data& data) {
  if (data.index() == 0) return "unset";
  if (spec.secret) return std::string(kSecret);
  const Data shown = Shown(spec, data);
  if (const auto* flag = std::get_if<bool>(&shown)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&shown)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&shown)) return fmt::format("{}", *real);
  // A size without a unit is a number.
  if (const auto* text = std::get_if<std::string>(&shown))
    return spec.type == Type::kBytes && IsDigits(*text) ? *text : Quote(*text);
  if (const auto* map = std::get_if<std::map<std::string, std::string>>(&shown)) return FormatMap(*map);
  return fmt::format("[{}]", QuoteAll(std::get<std::vector<std::string>>(shown)));
}

Data Shown(const Spec& spec, Data data) {
  if (data.index() == 0) return data;
  if (spec.secret) return std::string(kSecret);
  if (const auto* number = std::get_if<std::int64_t>(&data)) {
    if (spec.type == Type::kDuration) return FormatDuration(Nanoseconds(*number));
    if (spec.type == Type::kBytes && *number >= 0) return FormatBytes(static_cast<std::uint64_t>(*number));
  }
  if (auto* text = std::get_if<std::string>(&data)) *text = MaskValue(spec.key, *text);
  if (auto* list = std::get_if<std::vector<std::string>>(&data)) *list = MaskArguments(*list);
  if (auto* map = std::get_if<std::map<std::string, std::string>>(&data)) {
    for (auto& [name, text] : *map) text = MaskValue(name, text);
  }
  return data;
}

}  // namespace dtrun::options
