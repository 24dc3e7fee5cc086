#include "core/plugin/plugin_code.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

namespace dtrun::plugin {
namespace {

// Beyond this many the faults of a plugin's libraries name no plugin.
std::array<Code, 256> codes;
std::atomic<std::size_t> code_count{0};
std::array<std::atomic<int>, codes.size()> living_threads;  // of each
// How long threads have that are about to end.
constexpr int kLooks = 50;
constexpr std::chrono::milliseconds kBetweenLooks{10};

struct CountedThread {
  std::atomic<int>* counter = nullptr;
  ~CountedThread() {
    if (counter != nullptr) --*counter;
  }
};
thread_local CountedThread counted_thread;

// Of every object of the process.
std::vector<Code> LoadedObjects() {
  std::vector<Code> objects;
  const auto add = [](dl_phdr_info* info, std::size_t, void* to) {
    Code object{Code::Of::kItsLibrary, UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
      object.begin = std::min(object.begin, begin);
      object.end = std::max(object.end, begin + segment.p_memsz);
    }
    static_cast<std::vector<Code>*>(to)->push_back(object);
    return 0;
  };
  ::dl_iterate_phdr(add, &objects);
  return objects;
}

bool IsIn(const Code& code, const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return code.begin <= at && at < code.end;
}

void Keep(const Code& code) {
  const std::size_t count = code_count.load(std::memory_order_relaxed);
  if (count == codes.size()) return;
  codes[count] = code;
  code_count.store(count + 1, std::memory_order_release);
}

}  // namespace

const Code* CodeAt(std::uintptr_t address) {
  const std::size_t count = code_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (codes[i].begin <= address && address < codes[i].end) return &codes[i];
  }
  return nullptr;
}

bool IsOf(const Code& code, const char* text) {
  const auto same = [](char a, char b) { return a == b || (a == '-' && b == '_') || (a == '_' && b == '-'); };
  const char* who = code.who;
  while (*who != '\0' && same(*who, *text)) ++who, ++text;
  return *who == '\0';
}

const Code* CodeOf(const char* text) {
  const std::size_t count = code_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (codes[i].of == Code::Of::kPlugin && IsOf(codes[i], text)) return &codes[i];
  }
  return nullptr;
}

bool IsLoading(const char* text) {
  const std::size_t size = std::strlen(text), end = sizeof kBeingLoaded - 1;
  return size > end && std::strcmp(text + size - end, kBeingLoaded) == 0;
}

void CountThread(const void* code) {
  const Code* const its = CodeAt(reinterpret_cast<std::uintptr_t>(code));
  if (its == nullptr || its->of != Code::Of::kPlugin || counted_thread.counter != nullptr) return;
  counted_thread.counter = &living_threads[static_cast<std::size_t>(its - codes.data())];
  ++*counted_thread.counter;
}

int LivingThreads(const char* text) {
  const Code* const code = CodeOf(text);
  if (code == nullptr) return 0;
  const std::atomic<int>& living = living_threads[static_cast<std::size_t>(code - codes.data())];
  for (int looks = 0; living > 0 && looks < kLooks; ++looks) std::this_thread::sleep_for(kBetweenLooks);
  return living;
}

CodeOfLoad::CodeOfLoad() {
  for (const Code& object : LoadedObjects()) before_.insert(object.begin);
}

void CodeOfLoad::Note(Kind kind, const std::string& name, const void* inside) const {
  // For the life of the process, as the plugin is; never freed.
  const char* const who = ::strdup(fmt::format("{} '{}'", KindText(kind), name).c_str());
  const auto abort = reinterpret_cast<const void*>(&std::abort);
  const auto terminate = reinterpret_cast<const void*>(&std::terminate);
  for (Code object : LoadedObjects()) {
    const bool known = CodeAt(object.begin) != nullptr;
    object.who = who;
    if (IsIn(object, inside)) object.of = Code::Of::kPlugin;
    if (IsIn(object, abort) || IsIn(object, terminate)) object.of = Code::Of::kSystem;
    if (!known && (object.of != Code::Of::kItsLibrary || !before_.contains(object.begin))) Keep(object);
  }
}

}  // namespace dtrun::plugin
