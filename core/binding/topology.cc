#include "core/binding/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/number.h"

namespace dtrun::binding {
namespace {

// Parses the text from left to right.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool Skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Number(int* value) {
    const std::optional<int> number = TakeNumber<int>(&rest_);
    *value = number.value_or(-1);
    return *value >= 0;
  }

 private:
  std::string_view rest_;
};

bool ParseCore(Cursor& at, int socket, int numa, std::set<int>* seen, Topology* out) {
  Core core{socket, numa, {}};
  do {
    int processor = 0;
    if (!at.Number(&processor) || !seen->insert(processor).second) return false;
    if (!core.processors.empty() && processor < core.processors.back()) return false;
    core.processors.push_back(processor);
  } while (at.Skip('+'));
  out->cores.push_back(std::move(core));
  return true;
}

bool ParseGroup(Cursor& at, std::set<int>* seen, Topology* out) {
  int socket = 0, numa = 0;
  if (!at.Number(&socket) || !at.Skip('.') || !at.Number(&numa) || !at.Skip('=')) return false;
  do {
    if (!ParseCore(at, socket, numa, seen, out)) return false;
  } while (at.Skip(','));
  return true;
}

}  // namespace

int Topology::processor_count() const {
  std::size_t count = 0;
  for (const Core& core : cores) count += core.processors.size();
  return static_cast<int>(count);
}

int Topology::core_count() const {
  const int count = static_cast<int>(cores.size());
  return quota > 0 ? std::min(count, quota) : count;
}

std::string ToText(const Topology& topology) {
  std::string out;
  const Core* before = nullptr;
  for (const Core& core : topology.cores) {
    if (before != nullptr && before->socket == core.socket && before->numa == core.numa) {
      out += ',';
    } else {
      out += fmt::format("{}{}.{}=", before == nullptr ? "" : ";", core.socket, core.numa);
    }
    out += fmt::format("{}", fmt::join(core.processors, "+"));
    before = &core;
  }
  if (topology.quota > 0) out += fmt::format("@{}", topology.quota);
  return out;
}

Result<Topology> ParseTopology(std::string_view text) {
  Topology out;
  Cursor at(text);
  std::set<int> seen;
  do {
    if (!ParseGroup(at, &seen, &out)) {
      return Error{DTRUN_INVALID_ARGUMENT,
                   fmt::format("processors '{}' are not of the form '0.0=0+4,1+5;1.1=2+6,3+7' (socket.node="
                               "threads of each core), each number once; does that host run another dtrun?",
                               text)};
    }
  } while (at.Skip(';'));
  if (at.Skip('@') && (!at.Number(&out.quota) || out.quota == 0)) out.quota = -1;
  if (at.done() && out.quota >= 0) return out;
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("processors '{}' end in what is neither a core nor a group of cores; does that "
                           "host run another dtrun?",
                           text)};
}

}  // namespace dtrun::binding
