// failure.hpp - failures that are known by the text which a library prints, and how to read one.
//
// A table of KnownFailure belongs to one library. Its plugin uses it to say what went wrong;
// `dtrun explain` and the verdict of a job use it for programs that call the library without a
// plugin. Constants and pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrun::known {
inline namespace v0 __attribute__((visibility("hidden"))) {

  // How much of the story a text tells.
  enum class Depth {
    kCause,    // what went wrong
    kSymptom,  // only that something did; a cause in the same log is the better answer
  };

  // What the failure is, when the way in which a process ends does not say it.
  enum class Kind {
    kUnsaid,
    kNetwork,
    kRendezvous,
    kMemory,
    kConnection,  // of a connection to a peer or to anything else, such as a web service
  };

  // Ways between the GPUs of a host that the failure speaks against, as bits: a job may try again
  // without one of them.
  enum Way : unsigned {
    kNoWay = 0,
    kPeerAccess = 1,  // one GPU reads another's memory
    kHostMemory = 2,  // they meet in host memory
    kCudaIpc = 4,     // peer access by UCX alone
  };

  struct KnownFailure {
    static constexpr std::size_t kMostPatterns = 8;

    std::string_view id;  // "nccl-no-interface"; never changes its meaning
    // The texts, any of which is the failure; the grammar stands at Read. Unused ones are empty.
    std::string_view patterns[kMostPatterns];
    // One sentence each, without a full stop; the grammar stands at Fill.
    std::string_view what;
    std::string_view fix;     // dtrun's options first, the library's variables next
    std::string_view source;  // what prints the text
    Depth depth = Depth::kCause;
    Kind kind = Kind::kUnsaid;
    unsigned against = kNoWay;  // bits of Way
  };

  using Captures = std::vector<std::pair<std::string, std::string>>;  // name, text

  // Every pattern begins with a literal: where that stands, the rest is tried.
  constexpr std::string_view Anchor(std::string_view pattern) {
    return pattern.substr(0, pattern.find_first_of("{\n"));
  }

  namespace internal {

  constexpr std::size_t kWindow = 4096;  // bytes that one failure may extend over

  inline std::size_t LineEnd(std::string_view text, std::size_t at) {
    return std::min(text.find('\n', at), text.size());
  }

  // The end of the word at `at`.
  inline std::size_t WordEnd(std::string_view line, std::size_t at) {
    std::size_t end = std::min(line.find_first_of(" \t\r,;\"'`<>()[]", at), line.size());
    while (end > at && (line[end - 1] == '.' || line[end - 1] == ':')) --end;  // of the sentence
    return end;
  }

  }  // namespace internal

  // Reads `pattern` at the beginning of `text`, of which 4 KiB are looked at: what its captures
  // hold, or nothing. A pattern is literal text but for
  //   {name}     what stands before the next literal of this line; when none follows, one word
  //   {name...}  the rest of the line
  //   \n         what follows begins somewhere in a later line
  inline std::optional<Captures> Read(std::string_view pattern, std::string_view text) {
    const std::string_view anchor = Anchor(pattern);
    text = text.substr(0, internal::kWindow);
    if (text.substr(0, anchor.size()) != anchor) return std::nullopt;
    pattern.remove_prefix(anchor.size());
    std::size_t at = anchor.size();
    Captures captures;
    while (!pattern.empty()) {
      const bool next_line = pattern.front() == '\n';
      const std::size_t close = next_line ? 0 : pattern.find('}');
      std::string_view name = next_line ? "" : pattern.substr(1, close - 1);
      pattern.remove_prefix(close + 1);
      const std::string_view literal = Anchor(pattern);
      pattern.remove_prefix(literal.size());
      if (next_line) {
        const std::size_t end = internal::LineEnd(text, at);
        const std::size_t found = end < text.size() ? text.find(literal, end + 1) : text.npos;
        if (found == text.npos) return std::nullopt;
        at = found + literal.size();
        continue;
      }
      const std::string_view line = text.substr(0, internal::LineEnd(text, at));
      at = std::min(line.find_first_not_of(" \t", at), line.size());
      std::size_t found = line.size();
      if (name.size() > 3 && name.substr(name.size() - 3) == "...") {
        name.remove_suffix(3);
      } else {
        found = literal.empty() ? internal::WordEnd(line, at) : line.find(literal, at);
      }
      if (found == line.npos || found == at) return std::nullopt;
      captures.emplace_back(name, line.substr(at, found - at));
      at = found + literal.size();
    }
    return captures;
  }

  // Where in `text` the first pattern of `failure` stands that does, with its captures.
  inline std::optional<std::pair<std::size_t, Captures>> Find(const KnownFailure& failure,
                                                              std::string_view text) {
    for (const std::string_view pattern : failure.patterns) {
      if (pattern.empty()) continue;
      const std::string_view anchor = Anchor(pattern);
      for (std::size_t at = text.find(anchor); at != text.npos; at = text.find(anchor, at + 1)) {
        if (auto captures = Read(pattern, text.substr(at))) return std::pair(at, *std::move(captures));
      }
    }
    return std::nullopt;
  }

  // `text` with each {name} replaced by its capture. What stands in [brackets] is left out when
  // it names a capture that is missing, and so are the brackets.
  inline std::string Fill(std::string_view text, const Captures& captures) {
    std::string out;
    std::size_t bracket = std::string::npos;  // where the open one began in `out`
    bool missing = false;
    while (!text.empty()) {
      const char c = text.front();
      std::size_t taken = 1;
      if (c == '[') {
        bracket = out.size();
        missing = false;
      } else if (c == ']' && bracket != std::string::npos) {
        if (missing) out.resize(bracket);
        bracket = std::string::npos;
      } else if (c == '{') {
        taken = std::min(text.find('}'), text.size() - 1) + 1;
        const std::string_view name = text.substr(1, taken - 2);
        bool found = false;
        for (const auto& [key, value] : captures) {
          if (key != name || found) continue;
          out += value;
          found = true;
        }
        missing = missing || !found;
      } else {
        out += c;
      }
      text.remove_prefix(taken);
    }
    return out;
  }

}  // namespace )
}  // namespace dtrun::known
