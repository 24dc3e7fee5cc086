#include "core/control/stacks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/stacks/native.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"

namespace dtrun::control {
namespace {

struct ThreadBlock {
  std::string head;    // "  thread 12 "python3", state S, in futex"
  std::string frames;  // lines; empty: none is known
};

// RankDoing::text: its blocks, "process N" being a head of its own, and what a tool printed of native stacks.
struct Stacks {
  std::vector<ThreadBlock> blocks;
  std::string tool, native;
};

constexpr std::string_view kOfFrame = "    ", kNative = "  native, by ";

Stacks Parse(const std::string& text) {
  Stacks stacks;
  for (const std::string_view line : LinesOf(text)) {
    if (line.starts_with(kNative))
      stacks.tool = line.substr(kNative.size(), line.find(':') - kNative.size());
    else if (!stacks.tool.empty() && line.starts_with(kOfFrame))
      stacks.native += std::string(line.substr(kOfFrame.size())) + "\n";
    else if (line.starts_with(kOfFrame) && !stacks.blocks.empty())
      stacks.blocks.back().frames += std::string(line) + "\n";
    else
      stacks.blocks.push_back({std::string(line), ""});
  }
  return stacks;
}

std::string NativeLine(const stacks::NativeFrame& frame) {
  const std::string module = frame.module.substr(frame.module.rfind('/') + 1);
  const std::string from = !frame.file.empty() ? fmt::format(" at {}:{}", frame.file, frame.line)
                           : module.empty()    ? ""
                                               : " of " + module;
  return fmt::format("{}{}{}\n", kOfFrame, frame.function, from);
}

// The native frames of a thread, innermost first; for one with Python frames only those below the
// interpreter, which has a Python frame of its own for the rest.
std::string NativeFrames(const Stacks& all, const ThreadBlock& block) {
  constexpr std::string_view kThread = "  thread ";
  if (all.tool.empty() || !block.head.starts_with(kThread)) return {};
  const std::string_view id = std::string_view(block.head).substr(kThread.size());
  const auto number = static_cast<pid_t>(std::atoi(std::string(id).c_str()));
  const auto frames = all.tool == "gdb" ? stacks::FramesOfGdb(all.native, number, "")
                                        : stacks::FramesOfEuStack(all.native, number);
  std::string out;
  for (const stacks::NativeFrame& frame : frames) {
    const bool interpreter = frame.function.starts_with("_Py") || frame.function.starts_with("Py");
    if (interpreter && !block.frames.empty()) break;
    if (!frame.function.empty() && frame.function != "??") out += NativeLine(frame);
  }
  return out;
}

std::string Shown(const verdict::RankDoing& doing, bool all_threads) {
  std::string out;
  std::map<std::string, int> others;  // threads without frames, by what the kernel tells of them
  int count = 0;
  const Stacks stacks = Parse(doing.text);
  // Of a program without Python frames the kernel's view is all there is.
  const bool each =
      all_threads || std::ranges::all_of(stacks.blocks, &std::string::empty, &ThreadBlock::frames);
  for (const ThreadBlock& block : stacks.blocks) {
    const bool thread = block.head.starts_with("  thread");
    const std::string frames = NativeFrames(stacks, block) + block.frames;
    if (!thread || !frames.empty() || each) {
      out += block.head + "\n" + frames;
      continue;
    }
    ++count;
    const auto in = block.head.find(", in ");
    ++others[in == block.head.npos ? "at an unknown place" : block.head.substr(in + 2)];
  }
  if (count == 0) return out;
  out += fmt::format("  {} thread{} without Python frames (listed by dtrun stacks --all-threads):", count,
                     count == 1 ? "" : "s");
  const char* separator = " ";
  for (const auto& [what, times] : others) {
    out += fmt::format("{}{}{}", std::exchange(separator, "; "), times == 1 ? "" : fmt::format("{} ", times),
                       what);
  }
  return out + "\n";
}

// What a thread is doing, without its number and state: ""sleep", in clock_nanosleep".
std::string WithoutNumbers(const std::string& head) {
  const auto name = head.find('"'), state = head.find(", state "), in = head.find(", in ");
  if (name == head.npos || state == head.npos) return {};
  return head.substr(name, state - name) + (in == head.npos ? "" : head.substr(in));
}

// Whether frames could be read, of Python or by a tool.
bool HasFrames(const Stacks& stacks) {
  return !stacks.tool.empty() ||
         std::ranges::any_of(stacks.blocks, [](const ThreadBlock& block) { return !block.frames.empty(); });
}

// The place and the frames, without what differs between processes. The threads of a program without Python
// frames count by what the kernel tells of them.
std::string FoldKey(const verdict::RankDoing& doing) {
  std::string key = doing.phrase + "\n";
  const Stacks stacks = Parse(doing.text);
  const bool framed = HasFrames(stacks);
  for (const ThreadBlock& block : stacks.blocks)
    key += framed ? NativeFrames(stacks, block) + block.frames : WithoutNumbers(block.head) + "\n";
  return key;
}

std::string HostsOf(const Answer& answer, const std::vector<int>& ranks) {
  std::set<std::string> hosts, all;
  for (const RankNow& one : answer.ranks) all.insert(one.host);
  for (const int rank : ranks) {
    if (const RankNow* const process = answer.Find(rank)) hosts.insert(process->host);
  }
  if (all.size() < 2 || hosts.size() > 4) return "";
  return fmt::format(" on {}", fmt::join(hosts, ", "));
}

}  // namespace

std::string StacksText(const Answer& answer, bool all_threads) {
  std::map<std::string, std::vector<const verdict::RankDoing*>> groups;
  std::vector<std::string> order;
  for (const verdict::RankDoing& doing : answer.places) {
    const std::string key = FoldKey(doing);
    if (!groups.contains(key)) order.push_back(key);
    groups[key].push_back(&doing);
  }
  // What most ranks do comes first, and what few do stands at the end, next to the prompt.
  std::ranges::stable_sort(order, std::greater(), [&](const std::string& key) { return groups[key].size(); });
  std::string out;
  for (const std::string& key : order) {
    std::vector<int> ranks;
    for (const verdict::RankDoing* const doing : groups[key]) ranks.push_back(doing->rank);
    const verdict::RankDoing& first = *groups[key].front();
    out += fmt::format("{}{} {}{}\n", verdict::FoldRanks(ranks), HostsOf(answer, ranks), first.Said(),
                       ranks.size() == 1
                           ? ""
                           : fmt::format("; equal {}, here those of rank {}",
                                         HasFrames(Parse(first.text)) ? "stacks" : "states", first.rank));
    out += Shown(first, all_threads);
  }
  return out;
}

}  // namespace dtrun::control
