#include "option_value.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::conformance {
namespace {

[[noreturn]] void Refuse(const dtrun_option& option, const std::string& text, const std::string& must) {
  throw std::invalid_argument("option '" + std::string(option.key) + "' is '" + text + "', must be " + must);
}

// Takes the whole text.
template <class T>
bool Whole(std::string_view text, T* out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return problem == std::errc() && end == text.data() + text.size();
}

// A number that is not negative, and the unit behind it.
bool SplitUnit(std::string_view text, double* number, std::string_view* unit) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *number);
  *unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit->empty() && unit->front() == ' ') unit->remove_prefix(1);
  return problem == std::errc() && std::isfinite(*number) && *number >= 0;
}

bool ReadBytes(std::string_view text, std::int64_t* out) {
  double number = 0;
  std::string_view unit;
  if (!SplitUnit(text, &number, &unit)) return false;
  for (const std::string_view ending : {"iB", "B"}) {
    if (unit.size() < ending.size() || unit.substr(unit.size() - ending.size()) != ending) continue;
    unit.remove_suffix(ending.size());
    break;
  }
  for (const std::string_view name : {"", "K", "M", "G", "T"}) {
    if (unit == name) {
      *out = static_cast<std::int64_t>(number);
      return number < 9e18;
    }
    number *= 1024;
  }
  return false;
}

bool ReadDuration(std::string_view text, std::int64_t* out) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"h", 3.6e12}, {"m", 6e10}, {"s", 1e9},
                                                            {"ms", 1e6},   {"us", 1e3}, {"ns", 1}};
  double number = 0;
  std::string_view unit;
  if (!SplitUnit(text, &number, &unit)) return false;
  for (const auto& [name, ns] : kUnits) {
    if (unit != name || number * ns > 3.2e17) continue;
    *out = std::llround(number * ns);
    return true;
  }
  return false;
}

std::string Trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

// ["a", "b,c"]: what is between quotes. False if it is no such list.
bool ReadQuoted(const std::string& text, std::vector<std::string>* items) {
  std::size_t at = text.find_first_not_of(' ', 1);
  if (at == text.size() - 1 && text[at] == ']') return true;
  for (;;) {
    at = text.find_first_not_of(' ', at);
    if (at == text.npos || (text[at] != '"' && text[at] != '\'')) return false;
    const std::size_t end = text.find(text[at], at + 1);
    if (end == text.npos) return false;
    items->push_back(text.substr(at + 1, end - at - 1));
    at = text.find_first_not_of(' ', end + 1);
    if (at == text.size() - 1) return text[at] == ']';
    if (at == text.npos || text[at++] != ',') return false;
  }
}

// a,b or, as in a config, ["a", "b"].
std::vector<std::string> ReadItems(const dtrun_option& option, const std::string& given) {
  std::vector<std::string> items;
  const std::string text = Trimmed(given);
  if (text.empty()) return items;
  if (text[0] == '[') {
    if (!ReadQuoted(text, &items)) Refuse(option, given, "a list such as a,b or [\"a\", \"b\"]");
    return items;
  }
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(Trimmed(text.substr(begin, end - begin)));
    if (end == text.size()) return items;
    begin = end + 1;
  }
}

OptionValue ReadUnbounded(const dtrun_option& option, const std::string& text) {
  OptionValue value;
  switch (option.type) {
    case DTRUN_TYPE_BOOL:
      if (text != "true" && text != "false") Refuse(option, text, "true or false");
      value.integer = text == "true" ? 1 : 0;
      break;
    case DTRUN_TYPE_INT:
      if (!Whole(text, &value.integer)) Refuse(option, text, "a whole number");
      break;
    case DTRUN_TYPE_UINT:
      if (!Whole(text, &value.integer) || value.integer < 0) Refuse(option, text, "a whole number from 0 on");
      break;
    case DTRUN_TYPE_FLOAT:
      if (!Whole(text, &value.number) || !std::isfinite(value.number)) Refuse(option, text, "a number");
      break;
    case DTRUN_TYPE_BYTES:
      if (!ReadBytes(text, &value.integer)) Refuse(option, text, "a size such as 64, 64K or 8MiB");
      break;
    case DTRUN_TYPE_DURATION:
      if (!ReadDuration(text, &value.integer))
        Refuse(option, text, "a number and a unit, such as 500ms, 60s or 2m");
      break;
    case DTRUN_TYPE_ENUM: {
      std::string choices;
      for (std::uint64_t i = 0; i < option.choice_count; ++i) {
        if (text == option.choices[i]) {
          value.integer = static_cast<std::int64_t>(i);
          return value;
        }
        choices += (i == 0 ? "'" : ", '") + std::string(option.choices[i]) + "'";
      }
      Refuse(option, text, "one of " + choices);
    }
    case DTRUN_TYPE_LIST: value.items = ReadItems(option, text); break;
    case DTRUN_TYPE_PATH:
      if (text.empty()) Refuse(option, text, "a path");
      break;
    case DTRUN_TYPE_STRING: break;
    default: Refuse(option, text, "of a type that exists; " + std::to_string(option.type) + " does not");
  }
  return value;
}

}  // namespace

OptionValue ReadOption(const dtrun_option& option, const std::string& text) {
  OptionValue value = ReadUnbounded(option, text);
  const auto below = [](const OptionValue& a, const OptionValue& b) {
    return a.integer < b.integer || a.number < b.number;
  };
  if (option.min_text != nullptr && below(value, ReadUnbounded(option, option.min_text)))
    Refuse(option, text, std::string("at least ") + option.min_text);
  if (option.max_text != nullptr && below(ReadUnbounded(option, option.max_text), value))
    Refuse(option, text, std::string("at most ") + option.max_text);
  return value;
}

dtrun_option OptionAt(const dtrun_option* options, std::uint64_t index) {
  const auto* first = reinterpret_cast<const char*>(options);
  return sdk::internal::ReadStruct(
      reinterpret_cast<const dtrun_option*>(first + index * options->struct_size));
}

}  // namespace dtrun::conformance
