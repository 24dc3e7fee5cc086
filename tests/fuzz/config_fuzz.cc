// Any bytes as a config file: Load returns, and what it returns keeps its promises.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/spec/read.h"
#include "tests/fuzz/target.h"

namespace config_fuzz {

using dtrun::spec::Loaded;

// A file in memory, so that a run touches no disk.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("config.toml", MFD_CLOEXEC)) {
    if (fd_ < 0) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void Fill(const std::uint8_t* data, std::size_t size) const {
    if (::ftruncate(fd_, 0) != 0) std::abort();
    for (std::size_t at = 0; at < size;) {
      const ssize_t written = ::pwrite(fd_, data + at, size - at, static_cast<off_t>(at));
      if (written <= 0) std::abort();
      at += static_cast<std::size_t>(written);
    }
  }

 private:
  int fd_;
};

dtrun::Result<dtrun::options::Schema> DemoSchema(std::string_view kind, const std::string& name,
                                                 const dtrun::spec::JobSpec&) {
  if (name == "none such") return dtrun::Error{DTRUN_NOT_FOUND, "no such plugin"};
  using dtrun::options::Type;
  dtrun::options::Schema schema;
  for (int type = DTRUN_TYPE_BOOL; type <= DTRUN_TYPE_LIST; ++type) {
    dtrun::options::Spec spec;
    spec.key = std::string(kind) + ".options.o" + std::to_string(type);
    spec.type = static_cast<Type>(type);
    if (spec.type == Type::kEnum) spec.choices = {"a", "b"};
    schema.push_back(spec);
  }
  return schema;
}

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

bool OneLine(const std::string& text) { return text.find('\n') == std::string::npos; }

void Check(const Loaded& loaded) {
  for (const auto& problem : loaded.problems) {
    Require(!problem.message.empty(), "a problem says something");
    Require(OneLine(problem.place) && OneLine(problem.message) && OneLine(problem.hint), "texts are lines");
  }
  if (!loaded.problems.empty()) return;
  const auto& spec = loaded.spec;
  Require(!spec.job.command->empty(), "there is a command");
  for (const auto& row : spec.schema()) {
    const auto& value = spec.Get(row.key);
    if (value.set()) Require(CheckBounds(row, value.data).ok(), "values are legal");
    Require(Explain(spec, row.key).ok(), "every option is explained");
  }
  if (spec.backend_options.empty()) return;
  const dtrun_options options = spec.backend_options.front().Snapshot();
  const auto copy = dtrun::options::FromJson(dtrun::options::ToJson(options));
  Require(copy.ok(), "snapshots survive JSON");
  for (const auto& [key, entry] : options.entries) {
    Require(copy->entries.at(key).value.data == entry.value.data, "values survive JSON");
  }
}

DTRUN_FUZZ_TARGET(config)(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.Fill(data, size);
  dtrun::spec::Request request;
  request.file = file.path();
  // The same bytes as overrides: key=value, and the text of a variable and of a value.
  const std::string text(reinterpret_cast<const char*>(data), size < 256 ? size : 256);
  Check(Load(request, DemoSchema));
  request.sets = {text, "job.command=" + text, "job.env.X=" + text,
                  "job.ranks=" + text.substr(0, text.find(' ')),
                  "cluster.hosts=" + text.substr(std::min(text.size(), text.find(' ')))};
  request.environment = {{"DTRUN_CONFIG_JOB_ENV", text}, {"DTRUN_CONFIG_" + text, text}};
  Check(Load(request, DemoSchema));
  return 0;
}

}  // namespace config_fuzz
