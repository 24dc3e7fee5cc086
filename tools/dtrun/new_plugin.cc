// `dtrun plugins new` and `dtrun plugins verify`.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/base/program_files.h"
#include "core/base/read_file.h"
#include "core/base/standard_output.h"
#include "core/plugin/elf.h"
#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"
#include "sdk/helpers/helper.h"
#include "tools/dtrun/command_line/first_word.h"
#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/plugins.h"
#include "tools/dtrun/templates.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfASource = std::size_t{1} << 20;

// An example of the SDK that is a template. NAME in `run` is the new plugin's.
struct Source {
  const char* language;
  bool launcher;
  const char* folder;
  const char* name;    // of its plugin
  const char* main;    // the file that becomes plugin.c, plugin.cc or plugin.rs
  const char* verify;  // arguments of dtrun-conformance, so that it skips nothing of the example
  const char* run;
};

constexpr char kBench[] =
    "dtrun bench allreduce --plugin-dir build --backend NAME --local none --peers none --sizes 8:1M --factor "
    "8 --seconds 6";
constexpr char kInventory[] =
    "SITE_INVENTORY=hosts.ini dtrun --plugin-dir build --set cluster.from=NAME plan hostname";
constexpr Source kSources[] = {
    {"c", false, "tcp_c", "tcp_c", "tcp.c", "", kBench},
    {"c++", false, "tcp", "tcp", "tcp.cc", "", kBench},
    {"rust", false, "tcp_rust", "tcp_rust", "tcp.rs", "", kBench},
    {"c", true, "launcher_c", "inventory", "inventory.c", " --env SITE_INVENTORY=$PWD/hosts.ini", kInventory},
    {"c++", true, "template_launcher", "template", "template.cc", " --set command=nice,{}",
     "dtrun --plugin-dir build --set launcher.name=NAME --set 'launcher.options.command=[\"nice\", \"{}\"]' "
     "-n 2 hostname"},
    {"rust", true, "launcher_rust", "plain_rust", "plain.rs", "",
     "dtrun --plugin-dir build --set launcher.name=NAME -n 2 hostname"},
};

constexpr char kReadme[] = R"(# {name}

A {kind} plugin of dtrun, which began as the example {example} of dtrun's SDK. The headers in {sdk}/include/dtrun/abi say
what each member means. docs/plugins.md of dtrun is the guide, docs/abi.md has the rules.

Build, check that dtrun loads it, verify that it keeps the rules of the ABI, and use it:

    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release{place}
    cmake --build build
    dtrun plugins check build/libdtrun_{kind}_{file}.so
    dtrun plugins verify build/libdtrun_{kind}_{file}.so{verify}
    {run}
)";

// The folder in which the SDK has `part`: this installation, or that of the dtrun-conformance of PATH. Empty:
// none.
fs::path SdkWith(std::string_view part) {
  const char* const path = std::getenv("PATH");
  const fs::path own = SharedFolder().parent_path().parent_path();
  const fs::path other = helpers::Find("dtrun-conformance", path == nullptr ? "" : path);
  for (const fs::path& prefix : {own, other.parent_path().parent_path()}) {
    std::error_code none;
    if (!prefix.empty() && fs::exists(prefix / part, none)) return prefix;
  }
  return {};
}

Error WithoutSdk(std::string_view what) {
  return {DTRUN_NOT_FOUND,
          fmt::format(
              "{} not installed: neither {} nor the SDK of a dtrun-conformance of PATH has {}; install "
              "the package dtrun-sdk, or: cmake --install BUILD --prefix {} --component sdk",
              what, SharedFolder().parent_path().parent_path().string(),
              what.starts_with("the") ? "them" : "it", SharedFolder().parent_path().parent_path().string())};
}

// The text of a file of the example, for the new plugin. A name with an underscore is one wherever it stands,
// another where it is a string of its own.
std::string Renamed(std::string text, const Source& source, const fs::path& file, const std::string& name) {
  const std::string old = source.name, quotes = old.find('_') == old.npos ? "\"" : "";
  ReplaceAll(&text, source.main, "plugin" + fs::path(source.main).extension().string());
  if (file.filename() != "CMakeLists.txt") {
    ReplaceAll(&text, quotes + old + quotes, quotes + name + quotes);
    return text;
  }
  for (const std::string before : {"NAME ", "dtrun_", "dtrun_backend_", "dtrun_launcher_"}) {
    for (const char behind : {' ', '.', ')'})
      ReplaceAll(&text, before + old + behind, before + plugin::FileForm(name) + behind);
  }
  return text;
}

std::string ReadmeOf(const Source& source, const NewPluginArguments& arguments, const fs::path& sdk) {
  std::string run = source.run;
  ReplaceAll(&run, "NAME", arguments.name);
  return fmt::format(kReadme, fmt::arg("name", arguments.name),
                     fmt::arg("kind", source.launcher ? "launcher" : "backend"),
                     fmt::arg("example", source.folder), fmt::arg("sdk", sdk.string()),
                     fmt::arg("place", sdk == "/usr" ? "" : " -DCMAKE_PREFIX_PATH=" + Quoted({sdk.string()})),
                     fmt::arg("file", plugin::FileForm(arguments.name)), fmt::arg("verify", source.verify),
                     fmt::arg("run", run));
}

// Copies the example; the folder is new.
Status Write(const Source& source, const NewPluginArguments& arguments, const fs::path& sdk,
             const fs::path& folder) {
  std::error_code failure;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(sdk / "share/dtrun/examples" / source.folder, failure)) {
    const Result<std::string> text = ReadWholeForeignFile(entry.path(), kMostOfASource);
    if (!text) return text.error();
    fs::path file = entry.path().filename();
    if (file == source.main) file = "plugin" + file.extension().string();
    if (Status written =
            WriteNew((folder / file).string(), Renamed(*text, source, entry.path(), arguments.name), false);
        !written)
      return written;
  }
  if (failure) return Error::System("read the example", failure.value());
  return WriteNew((folder / "README.md").string(), ReadmeOf(source, arguments, sdk), false);
}

Status CheckName(const std::string& name, plugin::Kind kind) {
  if (Status named = plugin::CheckName(name, "give it such a name"); !named) return named;
  for (const plugin::File& file : plugin::FindAll(plugin::SearchPath({}, {}))) {
    if (file.kind != kind || file.name != plugin::FileForm(name)) continue;
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("there is a {0} plugin '{1}', of which a job would load "
                                                     "only one: {2}; give the new plugin another "
                                                     "name, such as my-{1}",
                                                     plugin::KindText(kind), name, file.path.string())};
  }
  for (const char* const own : {"self", "shm", "staging"}) {  // in dtrun_comm_backend and reports
    if (name != own) continue;
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("'{0}' is a backend of dtrun's own; give the plugin another name, such as my-{0}", name)};
  }
  if (WithoutPlugin(name).empty()) return {};
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("'{0}' as backend.name is {1}; give the plugin another name, such as my-{0}", name,
                           WithoutPlugin(name))};
}

// What the host refuses before it loads the file: its places may be written by others, or it is cut. What is
// no plugin's name, dtrun-conformance tells.
Status CheckFile(const std::string& file) {
  std::error_code failure;
  const fs::path path = fs::absolute(file, failure).lexically_normal();
  const auto named = plugin::ParseFileName(path.filename().string());
  if (failure || !named) return {};
  if (const auto found = plugin::Find(named->first, path.string(), {}); !found) return found.error();
  const auto opened = plugin::OpenedFile::Open(path);
  if (!opened) return opened.error();
  const auto elf = plugin::ReadElf(*opened);
  if (elf) return {};
  Error error = elf.error();
  error.text = fmt::format("'{}': {}", path.string(), error.text);
  return error;
}

}  // namespace

int NewPlugin(const NewPluginArguments& arguments) {
  if (const Status named =
          CheckName(arguments.name, arguments.launcher ? plugin::Kind::kLauncher : plugin::Kind::kBackend);
      !named)
    return Complain(named.error());
  const auto source = std::ranges::find_if(kSources, [&](const Source& one) {
    return one.language == arguments.language && one.launcher == arguments.launcher;
  });
  if (source == std::end(kSources)) {
    return Complain(
        fmt::format("--language {}: there is no template in it; write --language c, --language c++ or "
                    "--language rust",
                    arguments.language));
  }
  const fs::path sdk = SdkWith(fmt::format("share/dtrun/examples/{}", source->folder));
  if (sdk.empty()) return Complain(WithoutSdk("the SDK's examples are"));
  const std::string folder = arguments.output.empty() ? arguments.name : arguments.output;
  if (::mkdir(folder.c_str(), 0777) != 0) {
    const int number = errno;
    Error error = Error::System(fmt::format("cannot make the folder '{}'", folder), number);
    if (number == EEXIST)
      error.text = fmt::format("'{}' already exists; write --output and a folder that does not", folder);
    const fs::path above = fs::path(folder).parent_path();
    std::error_code unknown;
    if (number == ENOENT && !above.empty() && !fs::exists(above, unknown) && !unknown)
      error.text += fmt::format("; mkdir -p {}", Quoted({above.string()}));
    return Complain(error);
  }
  if (const Status written = Write(*source, arguments, sdk, folder); !written) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);  // it is new
    return Complain(written.error());
  }
  PrintOutput("made {} from the example {}; README.md has the commands to build, check, verify and run it\n",
              folder, source->folder);
  return 0;
}

int VerifyPlugin(const std::string& word, const std::vector<std::string>& plugin_dirs,
                 const std::vector<std::string>& arguments) {
  const fs::path sdk = SdkWith("bin/dtrun-conformance");
  if (sdk.empty()) return Complain(WithoutSdk("dtrun-conformance is"));
  const std::string file = PluginFileOf(word, plugin_dirs);
  if (const Status loadable = CheckFile(file); !loadable) return Complain(loadable.error());
  std::vector<std::string> words{(sdk / "bin/dtrun-conformance").string(), "--plugin", file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& one : words) argv.push_back(one.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return Complain(Error::System(fmt::format("start '{}'", words[0]), errno));
}

}  // namespace dtrun::cli
