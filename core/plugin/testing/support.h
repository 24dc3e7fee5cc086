// Helpers for the loader's tests: temporary folders, copies of test plugins, stderr capture.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/fd.h"
#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"

namespace dtrun::plugin::testing {

namespace fs = std::filesystem;

// This build's ABI, "0.2", and the next minor.
inline std::string Abi(std::uint32_t minors_ahead = 0) {
  return AbiText(DTRUN_ABI_MAJOR, DTRUN_ABI_MINOR + minors_ahead);
}

// A temporary folder, mode 0700, removed at the end.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "dtrun_plugin_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = fs::canonical(name);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;  // best effort
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

  // A copy of a test plugin under `as`.
  fs::path Copy(const std::string& name, const std::string& as) const {
    fs::path to = path_ / ("libdtrun_backend_" + as + ".so");
    fs::copy_file(fs::path(DTRUN_TEST_PLUGIN_DIR) / ("libdtrun_backend_" + name + ".so"), to);
    return to;
  }
  fs::path Copy(const std::string& name) const { return Copy(name, name); }
  // A file with `text`.
  fs::path Write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  fs::path path_;
};

// A test plugin as it was built.
inline File Built(const std::string& name) {
  const fs::path path = fs::path(DTRUN_TEST_PLUGIN_DIR) / ("libdtrun_backend_" + name + ".so");
  return File{Kind::kBackend, name, fs::canonical(path), "test", {}, {}};
}

// The device plugin of the tests.
inline File BuiltDevice() {
  const fs::path path = fs::path(DTRUN_TEST_PLUGIN_DIR) / "libdtrun_device_demo.so";
  return File{Kind::kDevice, "demo", fs::canonical(path), "test", {}, {}};
}

inline void SetMode(const fs::path& path, ::mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }

// Captures writes to descriptor 2 during its lifetime.
class StderrCapture {
 public:
  StderrCapture() : saved_(::dup(STDERR_FILENO)) {
    file_ = (folder_.path() / "stderr").string();
    const UniqueFd fd(::open(file_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600));
    ::dup2(fd.get(), STDERR_FILENO);
  }
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;
  ~StderrCapture() { ::dup2(saved_.get(), STDERR_FILENO); }

  std::string Text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  TempFolder folder_;
  UniqueFd saved_;
  std::string file_;
};

}  // namespace dtrun::plugin::testing
