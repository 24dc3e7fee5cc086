#include "tools/dtrun/templates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/base/fd.h"
#include "core/base/program_files.h"
#include "core/base/read_file.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/output/file_write.h"
#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kBasic[] = "basic";
constexpr std::size_t kMostOfATemplate = std::size_t{1} << 20;

// "Several hosts by ssh" from "# Several hosts by ssh: dtrun starts ...".
std::string PurposeOf(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of("# "), line.size()));
  return std::string(line.substr(0, line.find_first_of(":.")));
}

std::string Listed(const std::vector<Template>& templates) {
  std::string out;
  for (const Template& one : templates) out += fmt::format("  {:<12} {}\n", one.name, one.purpose);
  return out;
}

Error Unknown(const std::string& name, const std::vector<Template>& templates) {
  std::vector<std::string> names;
  for (const Template& one : templates) names.push_back(one.name);
  const auto nearest = Nearest(name, names);
  return {DTRUN_INVALID_ARGUMENT,
          fmt::format("--template {}: no such template; {}templates: {}; --list says what each is for", name,
                      nearest ? fmt::format("did you mean '{}'? ", *nearest) : "", fmt::join(names, ", "))};
}

}  // namespace

Status WriteNew(const std::string& file, const std::string& text, bool force) {
  const int more = force ? O_TRUNC : O_EXCL;
  const UniqueFd out(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | more, 0666));
  if (!out && errno == EEXIST) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("'{}' already exists; name another file, or replace it with --force", file)};
  }
  if (!out) {
    const int number = errno;
    Error error = Error::System(fmt::format("cannot create '{}'", file), number);
    if (number == ENOENT) error.text += fmt::format("; mkdir -p {}", fs::path(file).parent_path().string());
    return error;
  }
  if (const int number = output::WriteAll(out.get(), text); number != 0)
    return Error::System(fmt::format("cannot write '{}'", file), number);
  return {};
}

Result<std::vector<Template>> Templates() {
  const fs::path folder = SharedFolder() / "configs";
  std::vector<Template> templates;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().extension() != ".toml") continue;
    std::string text = ReadForeignFile(entry.path(), kMostOfATemplate);
    templates.push_back({entry.path().stem().string(), PurposeOf(text), std::move(text)});
  }
  if (templates.empty()) {
    return Error{DTRUN_NOT_FOUND,
                 fmt::format("there are no templates in '{}'; install dtrun again, with its folder share",
                             folder.string())};
  }
  std::ranges::sort(templates, [](const Template& a, const Template& b) {
    return std::pair(a.name != kBasic, a.name) < std::pair(b.name != kBasic, b.name);
  });
  return templates;
}

int InitConfig(const InitArguments& arguments) {
  const Result<std::vector<Template>> templates = Templates();
  if (!templates) return Complain(templates.error());
  if (arguments.list) {
    WriteOutput(Listed(*templates));
    return 0;
  }
  const auto chosen = std::ranges::find(*templates, arguments.name, &Template::name);
  if (chosen == templates->end()) return Complain(Unknown(arguments.name, *templates));
  if (std::ranges::find(*templates, arguments.file, &Template::name) != templates->end()) {
    return Complain(fmt::format("'{0}' is a template; dtrun config init --template {0} writes it to job.toml",
                                arguments.file));
  }
  if (arguments.file.empty()) {
    return Complain("the config's name is empty; write job.toml, or leave it out");
  }
  if (arguments.file != "-" && fs::path(arguments.file).extension() != ".toml") {
    return Complain(
        fmt::format("'{}': a config's name ends in .toml, so that `dtrun FILE` knows it; write {}",
                    arguments.file, fs::path(arguments.file).replace_extension(".toml").string()));
  }
  if (arguments.file == "-") {
    WriteOutput(chosen->text);
    return 0;
  }
  if (const Status written = WriteNew(arguments.file, chosen->text, arguments.force); !written)
    return Complain(written.error());
  PrintOutput(
      "wrote {0} from template {1}; --list shows the others\n"
      "change the values, then: dtrun config check {0}, dtrun plan {0}, dtrun {0}\n",
      arguments.file, chosen->name);
  return 0;
}

}  // namespace dtrun::cli
