#include "core/stacks/source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/read_file.h"
#include "core/base/text.h"

namespace dtrun::stacks {
namespace {

constexpr std::size_t kLongestSource = std::size_t{4} << 20;
constexpr std::size_t kMostKept = std::size_t{16} << 20;  // bytes

struct Lines {
  explicit Lines(std::string source) : text(std::move(source)) {
    for (char& c : text) {
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n') || c == 0x7f) c = '?';
    }
    lines = LinesOf(text);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  std::string text;
  std::vector<std::string_view> lines;
};

class KnownSources {
 public:
  // Without lines if it is not a regular file.
  std::shared_ptr<const Lines> Of(const std::string& path) {
    struct stat now {};
    if (::stat(path.c_str(), &now) != 0) return std::make_shared<const Lines>("");
    const Key key{now.st_dev, now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = files_.find(key); found != files_.end()) return found->second;
    }
    auto read = std::make_shared<const Lines>(ReadForeignFile(path, kLongestSource));
    const std::lock_guard lock(mutex_);
    if (kept_ + read->text.size() > kMostKept) {
      files_.clear();
      kept_ = 0;
    }
    if (files_.emplace(key, read).second) kept_ += read->text.size();
    return read;
  }

 private:
  using Key = std::tuple<dev_t, ino_t, off_t, time_t, long>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Lines>> files_;
  std::size_t kept_ = 0;
};

}  // namespace

Source SourceOf(pid_t pid) {
  static KnownSources& known = *new KnownSources;  // threads may use it until the process ends
  using Files = std::map<std::string, std::shared_ptr<const Lines>>;
  return [pid, files = Files()](const std::string& file, int line) mutable {
    auto found = files.find(file);
    if (found == files.end()) {
      const std::string root = fmt::format("/proc/{}/{}", pid, file.starts_with('/') ? "root" : "cwd/");
      found = files.emplace(file, known.Of(root + file)).first;
    }
    const auto index = static_cast<std::size_t>(line) - 1;
    const auto& lines = found->second->lines;
    return index < lines.size() ? std::string(lines[index]) : std::string();
  };
}

}  // namespace dtrun::stacks
