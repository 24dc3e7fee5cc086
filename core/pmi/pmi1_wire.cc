#include "core/pmi/pmi1_wire.h"

#include <utility>

namespace dtrun::pmi {
namespace {

// Command, key and value with their names.
constexpr std::size_t kMaxLineBytes = 4096;
constexpr std::size_t kShownBytes = 80;

// Removes and returns the text before the first `end`, which is also removed; all text if there is none.
std::string_view Cut(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return head;
}

Error Bad(std::string_view line, const char* why) {
  return Error::Of(DTRUN_INVALID_ARGUMENT, "PMI request '{}': {}", line.substr(0, kShownBytes), why);
}

}  // namespace

std::string_view Pmi1Request::Field(const std::string& name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : found->second;
}

Result<std::optional<Pmi1Request>> Pmi1Reader::Fail(std::string_view line, const char* why) {
  failure_ = Bad(line, why);
  return *failure_;
}

Result<std::optional<Pmi1Request>> Pmi1Reader::Next() {
  if (failure_) return *failure_;
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end > kMaxLineBytes && (end != buffer_.npos || buffer_.size() > kMaxLineBytes)) {
      return Fail(buffer_, "it is longer than any that PMI-1 has");
    }
    if (end == buffer_.npos) return std::optional<Pmi1Request>();
    const std::string whole = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);

    if (spawn_ || whole.starts_with("mcmd=")) {
      if (!spawn_ && whole != "mcmd=spawn") return Fail(whole, "only spawn has several lines");
      if (whole == "endcmd") return std::exchange(spawn_, std::nullopt);
      if (!spawn_) spawn_ = Pmi1Request{"spawn", {}};
      std::string_view value = whole;
      const std::string name(Cut(value, '='));
      if (name == "totspawns" || name == "spawnssofar") spawn_->fields[name] = value;
      continue;
    }

    Pmi1Request request;
    std::string_view rest = whole;
    while (!rest.empty()) {
      std::string_view value = Cut(rest, ' ');
      if (value.empty()) continue;  // two spaces
      if (value.find('=') == value.npos) return Fail(whole, "a word without '='");
      const std::string name(Cut(value, '='));
      if (name == "cmd") {
        request.command = value;
      } else if (!request.fields.emplace(name, value).second) {
        return Fail(whole, "a name is given twice");
      }
    }
    if (request.command.empty()) return Fail(whole, "it has no cmd");
    return std::optional(std::move(request));
  }
}

std::string EncodePairs(const std::map<std::string, std::string>& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) text += key + ' ' + value + '\n';
  return text;
}

Result<std::map<std::string, std::string>> DecodePairs(std::string_view text) {
  std::map<std::string, std::string> pairs;
  while (!text.empty()) {
    if (text.find('\n') == text.npos) return Bad(text, "a line of a barrier does not end");
    std::string_view value = Cut(text, '\n');
    if (value.find(' ') == value.npos) return Bad(value, "a key of a barrier without a value");
    const std::string key(Cut(value, ' '));
    pairs[key] = value;
  }
  return pairs;
}

}  // namespace dtrun::pmi
