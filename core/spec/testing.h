// For tests: a temporary folder with a config to load.
#pragma once

#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/spec/read.h"

namespace dtrun::spec {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dtrun-config-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path Write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

  // Rendered problems without the folder's name.
  std::string Short(const std::vector<Problem>& problems) const {
    std::string text = Render(problems);
    const std::string prefix = path_.string() + "/";
    for (std::size_t at = text.find(prefix); at != text.npos; at = text.find(prefix))
      text.erase(at, prefix.size());
    return text;
  }

  // The problems of `text` as train.toml.
  std::string ProblemsOf(std::string_view text, Request request = {}) const {
    request.file = Write("train.toml", text);
    return Short(Load(request, {}).problems);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace dtrun::spec
