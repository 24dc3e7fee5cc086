#include "tools/dtrun/torchrun/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/number.h"
#include "core/base/secrets.h"
#include "core/base/text.h"

namespace dtrun::torchrun {
namespace {

constexpr int kMaxLocalRank = 4095;  // the maximum number of ranks per host

bool IsWord(char c) { return IsDigit(c) || IsLetter(c) || c == '_'; }

// Accepts up to `most` digits and nothing else.
std::optional<int> Digits(std::string_view text, std::size_t most) {
  if (text.size() > most || !IsDigits(text)) return std::nullopt;
  return NumberOf<int>(text);
}

std::optional<int> StreamDigit(std::string_view text) {
  const auto digit = Digits(text, 1);
  return digit && *digit <= (kStdout | kStderr) ? digit : std::nullopt;
}

}  // namespace

int StreamSpec::For(int local_rank) const {
  if (of.empty()) return all;
  const auto found = of.find(local_rank);
  return found == of.end() ? kNoStream : found->second;
}

std::optional<int> ParseInt(std::string_view text) {
  text = Trim(text);
  const bool plus = text.starts_with('+') && text.size() > 1 && IsDigit(text[1]);
  if (plus) text.remove_prefix(1);
  return NumberOf<int>(text);
}

std::optional<double> ParseFloat(std::string_view text) {
  text = Trim(text);
  const std::optional<double> number = NumberOf<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Result<std::pair<int, int>> ParseNodes(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  if (parts.size() > 2) return Bad(fmt::format("expected N or MIN:MAX; found '{}'", text));
  const auto min = ParseInt(parts.front());
  const auto max = ParseInt(parts.back());
  if (!min || !max) return Bad(fmt::format("expected N or MIN:MAX; found '{}'", text));
  if (*min <= 0 || *min > *max) {
    return Bad(fmt::format("expected at least 1 node, and MIN not above MAX; found '{}'", text));
  }
  return std::pair(*min, *max);
}

Result<Endpoint> MeetingPlace(std::string_view text) {
  const std::string_view whole = Trim(text);
  if (whole.empty()) return Endpoint{"localhost", std::nullopt};
  Result<Endpoint> endpoint = ParseEndpoint(whole, 0);
  if (!endpoint) return endpoint;
  const bool legal = IsIpv6(endpoint->host) || std::ranges::all_of(endpoint->host, [](char c) {
                       return IsWord(c) || c == '.' || c == '-';
                     });
  if (!legal) return Bad(fmt::format("expected a host name or address; found '{}'", text));
  return endpoint;
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<std::vector<std::pair<std::string, std::string>>> ParseRendezvousConfig(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> config;
  if (Trim(text).empty()) return config;
  for (const std::string_view item : Split(Trim(text), ',')) {
    const std::size_t equals = item.find('=');
    const std::string key(Trim(item.substr(0, equals)));
    const std::string value(equals == item.npos ? "" : Trim(item.substr(equals + 1)));
    if (key.empty()) return Bad(fmt::format("expected KEY=VALUE,KEY=VALUE; found '{}'", MaskText(text)));
    if (value.empty()) return Bad(fmt::format("'{}' has no value; expected KEY=VALUE,KEY=VALUE", key));
    std::erase_if(config, [&](const auto& entry) { return entry.first == key; });
    config.emplace_back(key, value);
  }
  return config;
}

Result<StreamSpec> ParseStreams(std::string_view text) {
  StreamSpec spec;
  if (const auto digit = StreamDigit(text)) {
    spec.all = *digit;
    return spec;
  }
  for (const std::string_view item : Split(text, ',')) {
    const std::size_t colon = std::min(item.find(':'), item.size());
    const auto rank = Digits(item.substr(0, colon), 4);
    const auto digit = StreamDigit(item.substr(std::min(colon + 1, item.size())));
    if (!rank || !digit || *rank > kMaxLocalRank) {
      return Bad(fmt::format(
          "expected 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or LOCAL_RANK:0-3,...; found '{}'", text));
    }
    spec.of[*rank] = *digit;
  }
  return spec;
}

Result<std::vector<int>> ParseRanks(std::string_view text) {
  std::vector<int> ranks;
  if (text.empty()) return ranks;
  for (const std::string_view item : Split(text, ',')) {
    const auto rank = ParseInt(item);
    if (!rank) return Bad(fmt::format("expected local ranks such as 0,2; found '{}'", text));
    ranks.push_back(*rank);
  }
  return ranks;
}

std::vector<std::string> ParseFilters(std::string_view text) {
  std::vector<std::string> items(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      items.back() += text[i];
    } else if (text.substr(i + 1, 1) == ",") {
      items.back() += ',';
      ++i;
    } else {
      items.emplace_back();
    }
  }
  return items;
}

std::string ExpandPrefix(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    out.append(text.substr(0, dollar));
    text.remove_prefix(dollar);
    if (text.empty()) break;
    if (text.starts_with("$$")) {
      out += '$';
      text.remove_prefix(2);
      continue;
    }
    const std::size_t begin = text.starts_with("${") ? 2 : 1;
    std::size_t end = begin;
    if (end < text.size() && !IsDigit(text[end])) {
      while (end < text.size() && IsWord(text[end])) ++end;
    }
    const bool closed = begin == 1 || text.substr(end, 1) == "}";
    const auto found = values.find(std::string(text.substr(begin, end - begin)));
    if (closed && found != values.end()) {
      out += found->second;
      text.remove_prefix(begin == 2 ? end + 1 : end);
    } else {
      out += '$';
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace dtrun::torchrun
