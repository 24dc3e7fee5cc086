// What a process has that a plugin must leave alone. Values; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace dtrun::conformance {

struct ProcessState {
  // State that only the program may change: dispositions and mask of signals, environment, working folder,
  // umask and locale; each with its value.
  std::map<std::string, std::string> settings;
  std::map<int, std::string> files;  // open descriptors: what they lead to
  std::size_t threads = 0;
  std::size_t mappings = 0;  // of shared memory

  // Of this process; the mask is the calling thread's.
  static ProcessState Now();
  // Waits until no more threads are listed than `threads`, as the kernel lists one for a moment after it was
  // joined.
  static ProcessState Settled(std::size_t threads);
};

// "" when they are alike, else what differs, a line each. Files, threads and mappings count only when
// `resources`.
std::string Changes(const ProcessState& before, const ProcessState& after, bool resources);

}  // namespace dtrun::conformance
