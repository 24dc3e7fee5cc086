// What a process writes outside its memory. The main thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dtrun::conformance {

// What this process has given to write and its like, to files, pipes and sockets; nothing where the system
// does not count.
std::optional<std::uint64_t> WrittenBytes();

// As long as it lives, the working folder, HOME and TMPDIR are one folder of its own, where a plugin's files
// would show.
class EmptyFolder {
 public:
  EmptyFolder();
  ~EmptyFolder();
  EmptyFolder(const EmptyFolder&) = delete;
  EmptyFolder& operator=(const EmptyFolder&) = delete;

  // Names of what is in it, one a line.
  std::string Contents() const;

 private:
  std::string path_;
  std::string before_;  // the working folder
  std::map<std::string, std::optional<std::string>> variables_;
};

}  // namespace dtrun::conformance
