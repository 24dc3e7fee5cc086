#include "core/plan/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include "core/base/program_files.h"
#include "core/base/read_file.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/options/text.h"
#include "core/plan/at.h"
#include "core/plan/place.h"
#include "sdk/helpers/helper.h"

namespace dtrun::plan {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

// The absolute python3 of PATH. The user has not typed it, so neither a relative folder of PATH nor the
// current folder may provide it.
std::string Python3(const std::string& path, const fs::path& folder) {
  constexpr char kName[] = "python3";
  const auto first = FindOnPath(kName, path, folder);
  const auto meant = FindOnPath(kName, helpers::AbsoluteFolders(path), folder);
  if (first == meant && (meant || !IsFile(folder / kName))) return kName;
  return meant.value_or("/usr/bin/python3").string();
}

// Whether the first bytes show that the system can execute the file: "#!" of a script, or an ELF
// program.
bool IsProgram(const fs::path& file) {
  const std::string first = ReadForeignFile(file, 4);
  return first.starts_with("#!") || first ==
                                        "\x7f"
                                        "ELF";
}

bool LooksLikeToml(const fs::path& file) {
  const std::string beginning = ReadForeignFile(file, 4096);
  for (const std::string_view line : LinesOf(beginning)) {
    const std::string_view trimmed = Trim(line);
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    return trimmed.starts_with('[') && trimmed.ends_with(']');
  }
  return false;
}

// How to run a file that is not executable; `typed` is the user's name for it.
std::string ToRun(const std::string& typed, const fs::path& file) {
  const std::string kind = file.extension();
  const std::string path = typed.find('/') == std::string::npos ? "./" + typed : typed;
  if (kind == ".c" || kind == ".cc" || kind == ".cpp" || kind == ".cu" || kind == ".f90")
    return "; it is source code: compile it, and run the program";
  if (kind == ".py") return fmt::format("; put its interpreter in front: python3 {}", typed);
  if (LooksLikeToml(file)) return fmt::format("; for a config, write dtrun -c {}", typed);
  const std::string shell = kind == ".sh" ? fmt::format("put its shell in front: bash {}", typed) : "";
  if (!IsProgram(file)) {
    if (!shell.empty()) return "; " + shell;
    return fmt::format(", and has no #! line: put its interpreter in front, as in python3 {}", typed);
  }
  return fmt::format("; run 'chmod +x {}', and write {}{}", typed, path,
                     shell.empty() ? "" : ", or " + shell);
}

// "a link to 'x', which does not exist": what is there under the name of a file, and is no file and no
// folder; empty: nothing.
std::string KindOfEntry(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0) {
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return {};
    return S_ISFIFO(info.st_mode) ? "a pipe" : S_ISSOCK(info.st_mode) ? "a socket" : "a device";
  }
  const int number = errno;
  std::error_code none;
  const fs::path target = fs::read_symlink(file, none);
  if (none) return {};
  if (number == ELOOP) return "a link that leads back to itself";
  if (number == ENOENT) return fmt::format("a link to '{}', which does not exist", target.string());
  return fmt::format("a link to '{}', which cannot be read", target.string());
}

Status CheckExecutable(const fs::path& file) {
  if (const std::string kind = KindOfEntry(file); !kind.empty()) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "cannot run '{}': it is {}; name a program", file.string(),
                     kind);
  }
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    const int number = errno;
    Error error = Error::System(fmt::format("cannot run '{}'", file.string()), number);
    if (number == ENOENT) error.text += "; check the path, which is taken from the rank's folder, job.cwd";
    return error;
  }
  if (S_ISDIR(info.st_mode)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "cannot run '{}': it is a folder; name a program in it",
                     file.string());
  }
  if (!IsExecutable(file)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "cannot run '{}': it is not executable{}", file.string(),
                     ToRun(file.string(), file));
  }
  return {};
}

// Up to a few thousand files of a folder, enough to find a mistyped name.
std::vector<std::string> FilesIn(const fs::path& folder) {
  constexpr std::size_t kMost = 4096;
  std::vector<std::string> names;
  std::error_code failure;
  for (auto entry = fs::directory_iterator(folder, failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    if (names.size() == kMost) break;
    if (entry->is_regular_file(failure)) names.push_back(entry->path().filename().string());
  }
  return names;
}

// The ranks' value of PATH.
std::string RankPath(const spec::JobSpec& spec, const Environment& environment) {
  for (const auto* variables : {&UserVariables(spec), &environment}) {
    if (const auto found = variables->find("PATH"); found != variables->end()) return found->second;
  }
  return {};
}

// Whether the launcher turns the words of job.command into a command, as torchrun does with a
// script.
bool MakesCommands(const spec::JobSpec& spec) {
  const auto entry = spec.launcher_options.values.find("launcher.options.entry");
  if (entry == spec.launcher_options.values.end()) return false;
  const auto* text = std::get_if<std::string>(&entry->second.data);
  return text != nullptr && *text != "command";
}

// The program, and the script that is passed to an interpreter.
std::vector<std::string> FilesOf(const std::vector<std::string>& command) {
  std::vector<std::string> files{command.front()};
  const auto script = std::ranges::find_if(command.begin() + 1, command.end(),
                                           [](const std::string& word) { return !word.starts_with('-'); });
  if (script != command.end() && (script->ends_with(".py") || script->ends_with(".sh")))
    files.push_back(*script);
  return files;
}

// "train.py" for "python3 -u train.py": the first argument of a Python or shell; empty: none, or its name
// differs by rank.
std::string ScriptOf(const std::vector<std::string>& command) {
  const std::string_view program = FileName(command.front());
  const std::vector<std::string> files = FilesOf(command);
  if (files.size() < 2 || (!program.starts_with("python") && program != "sh" && program != "bash")) return {};
  const auto before = std::ranges::find(command, files[1]) - 1;  // "-m train.py" names no file
  return *before == "-m" || *before == "-c" || files[1].find("${") != std::string::npos ? "" : files[1];
}

// "~" or a variable at the start of a program, which no shell has expanded.
std::string NotExpanded(const std::string& program) {
  if (!program.starts_with("~/") && !program.starts_with("$HOME/")) return {};
  const auto expanded = options::ExpandPath(program.starts_with('~') ? program : "~" + program.substr(5));
  if (!expanded) return {};
  return fmt::format("'{}' is not expanded in job.command; write {}", program.substr(0, program.find('/')),
                     *expanded);
}

// The program in PATH of which `program` is probably a typo, with at most one wrong letter in four: with
// thousands of programs, any short name is close to some other one.
std::optional<std::string> ProgramLike(const std::string& program, const std::string& path,
                                       const std::string& cwd) {
  if (program == "python" && FindOnPath("python3", path, cwd)) return "python3";
  std::optional<std::string> best;
  int most = static_cast<int>(program.size()) / 4;
  for (const std::string& one : ProgramsWithPrefix(program.substr(0, 1), path, cwd)) {
    const int distance = EditDistance(program, one);
    if (distance > most) continue;
    best = one;
    most = distance - 1;
  }
  return best;
}

// The hint for a name that is not in PATH.
std::string NextStep(const std::string& program, const std::string& path, const std::string& cwd) {
  if (program.starts_with("--")) return "; dtrun's options go before '--' and the program";
  std::error_code failure;
  if (fs::is_regular_file(fs::path(cwd) / program, failure)) {
    const fs::path file = fs::path(cwd) / program;
    if (program.ends_with(".py") || !CheckExecutable(file)) {
      return fmt::format("; the file in '{}' is not executable{}", cwd, ToRun(program, file));
    }
    return fmt::format("; write ./{} for the file in '{}'", program, cwd);
  }
  if (program.find(' ') != std::string::npos)
    return "; the program and each of its arguments are strings of their own, as in [\"python3\", "
           "\"train.py\"]";
  if (const std::string kind = KindOfEntry(fs::path(cwd) / program); !kind.empty())
    return fmt::format("; '{}' in '{}' is {}; name a program", program, cwd, kind);
  const auto file = Nearest(program, FilesIn(cwd));
  const auto other = ProgramLike(program, path, cwd);
  if (fs::is_directory(fs::path(cwd) / program, failure)) {
    const std::string meant = other ? fmt::format("did you mean '{}'?", *other) : "name a program in it";
    return fmt::format("; '{}' in '{}' is a folder; {}", program, cwd, meant);
  }
  if (other && (!file || EditDistance(program, *other) < EditDistance(program, *file)))
    return fmt::format("; did you mean '{}'?", *other);
  if (file) return fmt::format("; did you mean the file '{}'?", *file);
  return fmt::format(", and there is no such file in '{}'; check the name, or write the program's path", cwd);
}

// The folders of PATH without duplicates; a long list is shortened.
std::string Folders(std::string_view path) {
  constexpr std::size_t kShown = 4;
  if (path.empty()) return "which is empty";
  std::vector<std::string_view> folders;
  for (const std::string_view folder : Split(path, ':')) {
    if (std::ranges::count(folders, folder) == 0) folders.push_back(folder);
  }
  const std::size_t shown = folders.size() <= kShown + 1 ? folders.size() : kShown;
  std::string text = fmt::format("{}", fmt::join(folders.begin(), folders.begin() + shown, ":"));
  if (shown < folders.size()) text += fmt::format(" and {} more folders", folders.size() - shown);
  return text;
}

Result<std::string> Search(const std::string& program, const std::string& path, const std::string& cwd) {
  if (program.empty()) return Error{DTRUN_INVALID_ARGUMENT, "the program's name is empty"};
  if (const std::string literal = NotExpanded(program); !literal.empty())
    return Error{DTRUN_INVALID_ARGUMENT, literal};
  if (program.find('/') != std::string::npos || program == "." || program == "..") {
    const fs::path file = (fs::path(cwd) / program).lexically_normal();
    if (Status status = CheckExecutable(file); !status) return status.error();
    return file.string();
  }
  Status nearest;  // the first file of that name that cannot be executed
  for (const fs::path& folder : FoldersOfPath(path, cwd)) {
    const fs::path file = (folder / program).lexically_normal();
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) continue;
    Status status = CheckExecutable(file);
    if (status.ok()) return file.string();
    if (nearest.ok()) nearest = std::move(status);
  }
  if (!nearest.ok()) return nearest.error();
  return Error::Of(DTRUN_NOT_FOUND, "cannot find the program '{}'{} (PATH: {})", MaskText(program),
                   NextStep(program, path, cwd), Folders(path));
}

}  // namespace

TypedProgram ProgramOf(std::vector<std::string> typed, const std::string& path, const fs::path& folder) {
  const std::string name = typed.front();
  const bool bare = name.find('/') == std::string::npos;
  if (bare && FindOnPath(name, path, folder)) return {std::move(typed), "", true};
  const fs::path file = folder / name;
  if (!IsFile(file)) return {std::move(typed), "", false};
  const bool executable = IsExecutable(file);
  if (name.ends_with(".py") && !(executable && ReadForeignFile(file, 2) == "#!")) {
    typed.insert(typed.begin(), {Python3(path, folder), "-u"});
    return {std::move(typed),
            fmt::format("'{}' {}: it is run as 'python3 -u {}', by the python3 of PATH", name,
                        executable ? "has no #! line" : "is not executable", name),
            true};
  }
  if (bare && executable) {
    typed.front() = "./" + name;
    return {std::move(typed), fmt::format("'{}' is not in PATH: it is run as './{}'", name, name), true};
  }
  return {std::move(typed), "", true};
}

// Names may contain line feeds, but the error must be one line.
Result<std::string> FindProgram(const std::string& program, const std::string& path, const std::string& cwd) {
  Result<std::string> found = Search(program, path, cwd);
  if (!found) return Error{found.error().code, Printable(found.error().text)};
  return found;
}

std::vector<std::string> CommandOf(const spec::JobSpec& spec, const Environment& environment,
                                   const std::string& cwd) {
  if (MakesCommands(spec)) return *spec.job.command;
  return ProgramOf(*spec.job.command, RankPath(spec, environment), cwd).command;
}

Status CheckFolder(const spec::JobSpec& spec, const std::string& cwd) {
  if (cwd == Printable(cwd)) return {};
  const std::string what =
      fmt::format("the ranks' folder '{}' has control characters in its name", Printable(cwd));
  if (spec.job.cwd.has()) return At(spec.job.cwd, what + "; name another folder");
  return Error{DTRUN_INVALID_ARGUMENT, what + "; start dtrun from another folder, or set job.cwd to one"};
}

Status CheckBeside(const spec::JobSpec& spec, const std::string& cwd) {
  const fs::path& folder = spec.folder;
  if (spec.file.empty() || spec.job.cwd.has()) return {};
  std::error_code failure;
  for (const std::string& file : FilesOf(*spec.job.command)) {
    if (fs::path(file).is_absolute() || fs::exists(fs::path(cwd) / file, failure)) continue;
    if (!fs::is_regular_file(folder / file, failure)) continue;
    return At(spec.job.command, "'{}' lies beside {}, and ranks run in {}; write cwd = \".\" below [job]",
              file, spec.file.string(), cwd);
  }
  return {};
}

Status CheckCommand(const spec::JobSpec& spec, const Environment& environment, const std::string& folder) {
  const std::string cwd = spec.job.cwd.value_or(folder);
  if (Status beside = CheckBeside(spec, cwd); !beside) return beside;
  const std::string program = CommandOf(spec, environment, cwd).front();
  const std::string path = RankPath(spec, environment);
  if (MakesCommands(spec) || program.find("${") != program.npos || path.find("${") != path.npos) return {};
  const auto found = FindProgram(program, path, cwd);
  if (!found) return At(spec.job.command, found.error());
  const std::string script = ScriptOf(*spec.job.command);
  std::error_code failure;
  if (script.empty() || fs::exists(fs::path(cwd) / script, failure)) return {};
  const auto file = Nearest(script, FilesIn(cwd));
  return At(spec.job.command, "there is no script '{}' in '{}'; {}", Printable(script), cwd,
            file ? fmt::format("did you mean '{}'?", *file) : "check the name, or set job.cwd");
}

}  // namespace dtrun::plan
