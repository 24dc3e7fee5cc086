#include "core/process/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "core/base/program_files.h"
#include "core/base/read_file.h"

namespace dtrun::process {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

std::string Interpreter(const std::string& first_line) {
  if (!first_line.starts_with("#!")) return {};
  const auto begin = first_line.find_first_not_of(" \t", 2);
  if (begin == std::string::npos) return {};
  return first_line.substr(begin, first_line.find_first_of(" \t", begin) - begin);
}

std::string_view PathOf(const std::vector<std::string>& env) {
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  }
  return kDefaultPath;
}

}  // namespace

Result<std::string> FindProgram(const std::string& name, const std::string& cwd,
                                const std::vector<std::string>& env, const std::string& option) {
  if (name.empty()) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 "cannot run an empty command; set job.command or write it after '--'"};
  }
  if (name.find('/') != std::string::npos) return name;
  const std::string_view path = PathOf(env);
  std::string found_but_closed;
  for (const fs::path& folder : FoldersOfPath(path, cwd)) {
    const fs::path file = folder / name;
    if (IsExecutable(file)) return file.string();
    std::error_code error;
    if (found_but_closed.empty() && fs::is_regular_file(file, error)) found_but_closed = file.string();
  }
  if (!found_but_closed.empty()) {
    return Error::Of(DTRUN_SYSTEM, "cannot run '{}': '{}' is not executable; run: chmod +x '{}'", name,
                     found_but_closed, found_but_closed);
  }
  std::string text = fmt::format("cannot run '{}': no such program (looked in PATH: {})", name, path);
  if (std::error_code error; fs::exists(fs::path(cwd) / name, error)) {
    text += fmt::format("; the file in '{}' is run with './{}'", cwd, name);
  } else {
    text += "; check " + option;
  }
  return Error{DTRUN_NOT_FOUND, std::move(text)};
}

std::string ExplainExec(const std::string& name, const std::string& file, const std::string& cwd, int number,
                        const std::string& option) {
  const fs::path full = fs::path(cwd) / file;
  const std::string start = fmt::format("cannot run '{}': ", name);
  const std::string beginning = ReadForeignFile(full, 256);
  const std::string first_line = beginning.substr(0, beginning.find('\n'));
  std::error_code error;
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      if (!fs::exists(full, error)) {
        return start + fmt::format("no such file or directory (looked in '{}'); check {}", cwd, option);
      }
      if (const std::string interpreter = Interpreter(first_line); !interpreter.empty()) {
        const bool windows = interpreter.back() == '\r';
        return start + fmt::format("its interpreter '{}' does not exist; correct its first line{}",
                                   windows ? interpreter.substr(0, interpreter.size() - 1) : interpreter,
                                   windows ? ", which ends in a carriage return" : "");
      }
      return start + "the loader it was linked for does not exist here; build it for this system";
    case EACCES:
      if (fs::is_directory(full, error)) return start + "it is a folder; name a program";
      if (fs::is_regular_file(full, error) && ::access(full.c_str(), X_OK) != 0) {
        return start +
               fmt::format("it is not executable; run: chmod +x '{}'", full.lexically_normal().string());
      }
      return start + "permission denied; check its folders, its interpreter, and mounts with 'noexec'";
    case ENOEXEC:
      if (first_line.starts_with("\x7f"
                                 "ELF")) {
        return start + "exec format error; it was built for another kind of machine";
      }
      return start + "exec format error; a script needs a first line such as '#!/bin/sh'";
    case E2BIG: return start + "arguments and environment are too long together; pass long lists in a file";
    default: return Error::System(fmt::format("cannot run '{}'", name), number).text;
  }
}

}  // namespace dtrun::process
