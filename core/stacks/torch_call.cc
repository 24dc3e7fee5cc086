#include "core/stacks/torch_call.h"

#include <algorithm>
#include <string>

#include "core/wire/limits.h"

namespace dtrun::stacks {
namespace {

constexpr std::string_view kModule = "/torch/distributed/distributed_c10d.py";
// {group: {rank in the world: rank in the group}}
constexpr std::string_view kRanksByGroup = "_pg_group_ranks";
constexpr std::uint64_t kMostNames = 64;
constexpr std::uint64_t kMostInDict = 1 << 14;
constexpr int kMostIndexBytes = 20;  // their logarithm
constexpr std::size_t kMostCalls = 256;
constexpr std::uint64_t kTypeAt = 8, kTypeNameAt = 24;  // of PyObject and PyTypeObject

bool IsA(const Memory& memory, std::uint64_t object, std::string_view type) {
  const std::uint64_t name = memory.Pointer(memory.Pointer(object + kTypeAt) + kTypeNameAt);
  return memory.Bytes(name, type.size() + 1) == std::string(type) + '\0';
}

// Of one "digit", as ranks are.
std::optional<int> IntAt(const Memory& memory, const PythonObjects& at, std::uint64_t object) {
  if (!IsA(memory, object, "int")) return std::nullopt;
  // Negative ones have a sign in the bits below the number of digits, or a negative number.
  const auto read = memory.Read<std::int64_t>(object + at.digits);
  if (!read) return std::nullopt;
  const std::int64_t digits = *read >> at.digits_shift;
  const bool negative = at.digits_shift > 0 && (*read & 3) == 2;
  if (digits == 0) return 0;
  const auto digit = memory.Read<std::int32_t>(object + at.digits_at);
  return digits == 1 && !negative && digit ? std::optional(*digit) : std::nullopt;
}

// Whether the protocol carries it; the program may have written any number there.
bool IsRank(int number) { return number >= wire::kAnyRank.least && number <= wire::kAnyRank.most; }

struct Entry {
  std::uint64_t key = 0, value = 0;
};

std::vector<Entry> EntriesOf(const Memory& memory, const PythonObjects& at, std::uint64_t dict) {
  enum : std::uint8_t { kWithHash = 0, kOfTexts = 1 };
  const std::uint64_t keys = memory.Pointer(dict + at.dict.keys);
  const auto log2_index_bytes = memory.Read<std::uint8_t>(keys + at.keys.log2_index_bytes);
  const auto kind = memory.Read<std::uint8_t>(keys + at.keys.kind);
  const auto count = memory.Read<std::uint64_t>(keys + at.keys.entries);
  if (!log2_index_bytes || !kind || !count || *kind > kOfTexts || *count > kMostInDict ||
      *log2_index_bytes > kMostIndexBytes)
    return {};
  const std::size_t words = *kind == kWithHash ? 3 : 2;
  const std::string bytes = memory.Bytes(keys + at.keys.indices + (std::uint64_t{1} << *log2_index_bytes),
                                         *count * words * sizeof(std::uint64_t));
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < bytes.size(); i += words * sizeof(std::uint64_t)) {
    Entry entry;
    bytes.copy(reinterpret_cast<char*>(&entry), sizeof entry, i + (words - 2) * sizeof(std::uint64_t));
    if (entry.value != 0) entries.push_back(entry);  // 0: removed
  }
  return entries;
}

}  // namespace

std::optional<std::vector<int>> TorchCalls::AwaitedIn(const Memory& memory, const PythonLayout& layout,
                                                      const std::vector<Frame>& frames) {
  if (!layout.objects) return std::nullopt;
  const PythonObjects& at = *layout.objects;
  const auto call = std::ranges::find_if(
      frames, [](const Frame& frame) { return std::string_view(frame.file).ends_with(kModule); });
  if (call == frames.end() || call->at == 0) return std::nullopt;
  const Variables& variables = VariablesOf(memory, layout, *call);
  const auto value_of = [&](int index) {
    return memory.Pointer(call->at + at.frame.variables +
                          static_cast<std::uint64_t>(index) * sizeof(std::uint64_t));
  };
  if (variables.peer >= 0) {
    const std::optional<int> peer = IntAt(memory, at, value_of(variables.peer));
    return peer && IsRank(*peer) ? std::optional(std::vector<int>{*peer}) : std::nullopt;
  }
  if (variables.group < 0) return std::nullopt;
  const std::uint64_t globals = memory.Pointer(call->at + at.frame.globals);
  std::vector<int> members = MembersOf(memory, layout, globals, value_of(variables.group));
  return members.empty() ? std::nullopt : std::optional(std::move(members));
}

const TorchCalls::Variables& TorchCalls::VariablesOf(const Memory& memory, const PythonLayout& layout,
                                                     const Frame& frame) {
  if (variables_.size() >= kMostCalls) variables_.clear();
  const auto [known, fresh] = variables_.try_emplace(frame.code);
  if (!fresh) return known->second;
  const PythonObjects& at = *layout.objects;
  const std::uint64_t names = memory.Pointer(frame.code + at.code.names);
  const auto count = memory.Read<std::uint64_t>(names + at.size).value_or(0);
  const std::string_view peer = frame.function == "recv" ? "src" : frame.function == "send" ? "dst" : "";
  for (std::uint64_t i = 0; i < std::min(count, kMostNames); ++i) {
    const std::string name =
        TextAt(memory, layout.text, memory.Pointer(names + at.items + i * sizeof(std::uint64_t)));
    if (name == "group") known->second.group = static_cast<int>(i);
    if (!peer.empty() && name == peer) known->second.peer = static_cast<int>(i);
  }
  return known->second;
}

std::vector<int> TorchCalls::MembersOf(const Memory& memory, const PythonLayout& layout,
                                       std::uint64_t globals, std::uint64_t group) {
  const PythonObjects& at = *layout.objects;
  if (globals != globals_ || ranks_by_group_ == 0) {
    globals_ = globals;
    ranks_by_group_ = 0;
    for (const Entry& entry : EntriesOf(memory, at, globals))
      if (TextAt(memory, layout.text, entry.key) == kRanksByGroup) ranks_by_group_ = entry.value;
  }
  if (!IsA(memory, ranks_by_group_, "dict")) return {};
  const std::vector<Entry> groups = EntriesOf(memory, at, ranks_by_group_);
  const auto found = std::ranges::find(groups, group, &Entry::key);
  if (found == groups.end() || !IsA(memory, found->value, "dict")) return {};
  if (members_.size() >= kMostCalls) members_.clear();
  const auto [known, fresh] = members_.try_emplace(
      {found->value, memory.Read<std::uint64_t>(found->value + at.dict.used).value_or(0)});
  if (!fresh) return known->second;
  for (const Entry& entry : EntriesOf(memory, at, found->value))
    if (const std::optional<int> rank = IntAt(memory, at, entry.key); rank && IsRank(*rank))
      known->second.push_back(*rank);
  return known->second;
}

}  // namespace dtrun::stacks
