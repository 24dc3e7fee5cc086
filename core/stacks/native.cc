#include "core/stacks/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "core/base/text.h"
#include "core/stacks/memory.h"

namespace dtrun::stacks {
namespace {

constexpr std::size_t kLongestName = 120;

// The name known to users: "nanosleep" for "__GI___nanosleep@GLIBC_2.2.5".
std::string Called(const std::string& function) {
  std::string_view name = function;
  name = name.substr(0, name.find('@'));
  const auto bare = [&] {
    const auto first = name.find_first_not_of('_');
    if (first != std::string_view::npos) name.remove_prefix(first);
  };
  bare();
  if (name.starts_with("GI_")) name.remove_prefix(3);
  bare();
  if (name.starts_with("libc_")) name.remove_prefix(5);
  bare();
  return std::string(name);
}

bool IsOwn(const NativeFrame& frame) {
  return !IsLibrary(frame.module) && !frame.function.empty() && frame.function != "_start" &&
         !IsOfHeader(frame);
}

// Whether a rank waits for others in the call.
bool CallWaits(std::string_view called) {
  if (called.starts_with('P')) called.remove_prefix(1);  // MPI's profiling names
  constexpr std::array kBegins = {"MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Barrier",
                                  "MPI_Bcast",     "MPI_Gather",    "MPI_Reduce",   "MPI_Scatter",
                                  "MPI_Scan",      "MPI_Recv",      "MPI_Sendrecv", "MPI_Wait",
                                  "MPI_Init",      "MPI_Finalize",  "MPI_Comm_",    "dtrun_",
                                  "dtrun::",       "nccl",          "gloo::"};
  return std::ranges::any_of(kBegins, [&](const char* known) { return called.starts_with(known); });
}

// Whether a thread waits for another of its process in the call.
bool CallWaitsForThread(std::string_view called) {
  constexpr std::array kBegins = {
      "pthread_mutex_", "pthread_cond_",      "pthread_rwlock_",         "pthread_barrier_wait",
      "pthread_join",   "pthread_timedjoin_", "pthread_clockjoin_",      "sem_wait",
      "sem_timedwait",  "sem_clockwait",      "std::condition_variable", "std::thread::join"};
  return std::ranges::any_of(kBegins, [&](const char* known) { return called.starts_with(known); });
}

// The program's own call of the C library: a transport has frames of its library between the two.
bool CallWaitsForPeer(std::string_view called) {
  constexpr std::array kNames = {"recv", "recvfrom", "recvmsg", "accept", "accept4", "connect"};
  return std::ranges::find(kNames, called) != kNames.end();
}

// "/src/main.cc:12:5" and "main.cc:12"
void SetSource(std::string_view text, NativeFrame* frame) {
  const auto first = text.find(':');
  if (first == std::string_view::npos || first == 0) return;
  frame->file = Printable(text.substr(0, first));
  frame->line = std::atoi(std::string(text.substr(first + 1, 9)).c_str());
}

std::string ModuleAt(const std::vector<Mapping>& mappings, std::uint64_t address) {
  for (const Mapping& mapping : mappings) {
    if (address >= mapping.begin && address < mapping.end) return Printable(mapping.path);
  }
  return {};
}

}  // namespace

bool IsLibrary(std::string_view module) {
  if (module.empty() || module.front() == '[') return true;
  constexpr std::array kFolders = {"/usr/lib", "/lib/", "/lib64/", "/lib32/", "/nix/store/"};
  const std::string_view name = FileName(module);
  const bool shared = name.find(".so") != std::string_view::npos;
  for (const char* const packages : {"/site-packages/", "/dist-packages/"})
    if (shared && module.find(packages) != std::string_view::npos) return true;
  if (shared && std::ranges::any_of(kFolders, [&](const char* folder) { return module.starts_with(folder); }))
    return true;
  // Library names in any folder.
  constexpr std::array kNames = {"libdtrun",  "libmpi",   "libopen-", "libuc",   "libnccl",  "librccl",
                                 "libgloo",   "libtorch", "libc10",   "libcuda", "libcu",    "libstdc++",
                                 "libc++",    "libgcc_s", "libpmix",  "libglp",  "libhwloc", "libfabric",
                                 "libpython", "libgomp",  "libomp"};
  return shared && std::ranges::any_of(kNames, [&](const char* known) { return name.starts_with(known); });
}

bool IsOfHeader(const NativeFrame& frame) {
  constexpr std::array kNamespaces = {"std::", "__gnu_cxx::", "dtrun::"};
  constexpr std::array kFolders = {"/include/c++/", "/include/dtrun/"};
  return frame.file.starts_with("/usr/include/") ||
         std::ranges::any_of(kNamespaces, [&](auto known) { return frame.function.starts_with(known); }) ||
         std::ranges::any_of(kFolders,
                             [&](auto known) { return frame.file.find(known) != std::string::npos; });
}

std::string WithoutArguments(std::string_view signature) {
  std::string out;
  int depth = 0;
  for (const char c : signature) {
    if (c == '<' || c == '(') {
      ++depth;
    } else if (c == '>' || c == ')') {
      depth = std::max(depth - 1, 0);
    } else if (depth == 0) {
      out.push_back(c);
    }
  }
  for (const std::string_view after : {" const", " volatile", " [clone", " ["}) {
    if (const auto at = out.find(after); at != std::string::npos && at > 0) out.resize(at);
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == ':')) out.pop_back();
  if (const auto at = out.rfind(' '); at != std::string::npos && out.find("operator") == std::string::npos)
    out.erase(0, at + 1);
  constexpr std::size_t kRustHash = sizeof "::h0123456789abcdef" - 1;
  if (out.size() > kRustHash && out.find("::h", out.size() - kRustHash) == out.size() - kRustHash &&
      out.find_first_not_of("0123456789abcdef", out.size() - 16) == out.npos)
    out.resize(out.size() - kRustHash);
  if (out.starts_with("::")) out.erase(0, 2);  // what is before it was in brackets
  if (out.empty()) out = signature;
  return Printable(std::string_view(out).substr(0, kLongestName));
}

std::vector<NativeFrame> FramesOfEuStack(std::string_view text, pid_t id) {
  std::vector<NativeFrame> frames;
  bool in_thread = id == kAllThreads;
  for (std::string_view line : LinesOf(text)) {
    if (line.starts_with("TID ")) {
      in_thread = id == kAllThreads || std::atoi(std::string(line.substr(4, 12)).c_str()) == id;
    } else if (in_thread && line.starts_with("    ") && !frames.empty()) {
      SetSource(line.substr(4), &frames.back());
    } else if (const auto address = line.find("0x"); in_thread && line.starts_with('#') && address < 8) {
      NativeFrame frame;
      const auto dash = line.rfind(" - ");
      if (dash != std::string_view::npos) frame.module = Printable(line.substr(dash + 3));
      const auto name = line.find(' ', address);
      const auto end = std::min(dash, line.size());
      if (name != std::string_view::npos && name + 1 < end)
        frame.function = WithoutArguments(line.substr(name + 1, end - name - 1));
      frames.push_back(std::move(frame));
    }
  }
  return frames;
}

std::vector<NativeFrame> FramesOfGdb(std::string_view text, pid_t id, std::string_view maps) {
  const std::vector<Mapping> mappings = MappingsIn(maps);
  const std::string ours = fmt::format("(LWP {})", id);
  std::vector<NativeFrame> frames;
  bool in_thread = false;
  for (const std::string_view line : LinesOf(text)) {
    if (line.starts_with("Thread ")) {
      in_thread = id == kAllThreads || line.find(ours) != std::string_view::npos ||
                  line.find(fmt::format("(process {})", id)) != std::string_view::npos;
    }
    const auto address = line.find("0x"), in = line.find(" in ");
    if (!in_thread || !line.starts_with('#') || address > 8 || in == std::string_view::npos) continue;
    NativeFrame frame;
    frame.module =
        ModuleAt(mappings, std::strtoull(std::string(line.substr(address, 18)).c_str(), nullptr, 16));
    const auto end = line.find(" (", in + 4);
    const std::string_view function = line.substr(in + 4, std::min(end, line.size()) - in - 4);
    if (function != "??") frame.function = WithoutArguments(function);
    if (const auto at = line.rfind(" at "); at != std::string_view::npos && at > in)
      SetSource(line.substr(at + 4), &frame);
    frames.push_back(std::move(frame));
  }
  return frames;
}

std::optional<NativePlace> PlaceOf(const std::vector<NativeFrame>& frames) {
  const auto own = std::ranges::find_if(frames, IsOwn);
  if (own == frames.end()) return std::nullopt;
  NativePlace place;
  place.within = own->function;
  if (own->line > 0) place.where = fmt::format("{}:{}", FileName(own->file), own->line);
  // The function that it calls; for several names of one function the outermost.
  for (auto called = own; called != frames.begin();) {
    --called;
    if (called->function.starts_with("dtrun::detail::")) continue;
    place.what = Called(called->function);
    if (!place.what.empty()) break;
  }
  if (place.what == "ompi_mpi_finalize")
    place.what = "MPI_Finalize";  // which jumps to it and leaves no frame
  place.waits = CallWaits(place.what);
  place.waits_for_thread = CallWaitsForThread(place.what);
  place.waits_for_peer = CallWaitsForPeer(place.what);
  return place;
}

bool AnyWaits(const std::vector<NativeFrame>& frames) {
  return std::ranges::any_of(frames,
                             [](const NativeFrame& frame) { return CallWaits(Called(frame.function)); });
}

}  // namespace dtrun::stacks
