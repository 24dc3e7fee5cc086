#include "written.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace dtrun::conformance {
namespace fs = std::filesystem;

std::optional<std::uint64_t> WrittenBytes() {
  std::ifstream file("/proc/self/io");
  std::string name;
  for (std::uint64_t count = 0; file >> name >> count;) {
    if (name == "wchar:") return count;
  }
  return std::nullopt;
}

EmptyFolder::EmptyFolder()
    : path_(fs::temp_directory_path() / "dtrun-conformance-XXXXXX"), before_(fs::current_path()) {
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make the folder '" + path_ + "'");
  for (const char* name : {"HOME", "TMPDIR"}) {
    const char* const value = std::getenv(name);
    variables_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
    setenv(name, path_.c_str(), 1);
  }
  fs::current_path(path_);
}

EmptyFolder::~EmptyFolder() {
  std::error_code ignored;
  fs::current_path(before_, ignored);
  for (const auto& [name, value] : variables_) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
  fs::remove_all(path_, ignored);
}

std::string EmptyFolder::Contents() const {
  std::string text;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_))
    text += entry.path().filename().string() + "\n";
  return text;
}

}  // namespace dtrun::conformance
