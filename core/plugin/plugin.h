// Finds, loads and describes plugins. The only user of Boost.DLL.
//
// Rules: V in docs/abi.md. A plugin is loaded NOW, LOCAL and NODELETE from an absolute path and
// stays for the life of the process. Each file has one final result: if a match fails to load, that
// is the error, and later folders are not tried. Load from the main thread; a loaded Plugin may be
// read from any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/base/result.h"
#include "core/hosts/launchers.h"
#include "core/options/snapshot.h"
#include "core/plugin/launch_job.h"
#include "dtrun/abi.h"
#include "dtrun/abi/device.h"

namespace dtrun::plugin {

enum class Kind {
  kBackend = DTRUN_KIND_BACKEND,
  kLauncher = DTRUN_KIND_LAUNCHER,
  kDevice = DTRUN_KIND_DEVICE
};
inline constexpr Kind kKinds[] = {Kind::kBackend, Kind::kLauncher, Kind::kDevice};
const char* KindText(Kind kind);  // "backend", "launcher", "device"
// nullopt for any other text.
std::optional<Kind> KindOf(std::string_view text);

// ---- find ------------------------------------------------------------------------------

struct Folder {
  std::filesystem::path path;
  std::string origin;  // "--plugin-dir", "DTRUN_PLUGIN_PATH", "plugins.path in train.toml", "installed"
};

// Folders in search order: --plugin-dir, DTRUN_PLUGIN_PATH (':' between folders), the config's
// plugins.path, the folder relative to this binary or libdtrun, the compiled-in one. Environment
// and config are ignored under AT_SECURE. Relative folders are made absolute; the working directory
// is never searched by itself.
std::vector<Folder> SearchPath(const std::vector<std::string>& plugin_dirs,
                               const std::vector<std::string>& config_folders);

struct File {
  Kind kind = Kind::kBackend;
  std::string name;                             // "gloo"
  std::filesystem::path path;                   // real path
  std::string origin;                           // origin of the folder
  std::vector<std::filesystem::path> shadowed;  // same name, later folders
  std::vector<std::string> warnings;            // group-writable folder, ...
  std::string id = {};                          // required id (FileId); empty: any
};

// The file of plugin `name`, or an absolute path used verbatim. Names match [a-z][a-z0-9_-]{0,31};
// '-' is written '_' in the file name. Checks permissions (rejects world-writable files and
// folders, and owners other than root and the user). The error for a missing name lists the
// existing plugins, the nearest name, and every folder searched.
Result<File> Find(Kind kind, const std::string& name_or_path, const std::vector<Folder>& folders);

// Every plugin file on the path, first match per name, without loading or checking.
std::vector<File> FindAll(const std::vector<Folder>& folders);

// ---- load ------------------------------------------------------------------------------

// A loaded plugin: its table, normalised so that every member exists for this build.
class Plugin {
 public:
  const dtrun_plugin& table() const { return table_; }
  const dtrun_backend& backend() const { return backend_; }     // REQUIRES: kind is backend
  const dtrun_launcher& launcher() const { return launcher_; }  // REQUIRES: kind is launcher
  const dtrun_device& device() const { return device_; }        // REQUIRES: kind is device
  const File& file() const { return file_; }
  const std::string& id() const { return id_; }      // of the loaded file (FileId)
  const dtrun_host& host() const { return *host_; }  // to pass to table().init
  options::Schema schema() const;  // full keys: "backend.options.…", "launcher.options.…", …
  // The default values of its options; device plugins always use these.
  Result<dtrun_options> Defaults() const;

 private:
  friend class Registry;
  File file_;
  std::string id_;
  const dtrun_host* host_ = nullptr;
  dtrun_plugin table_{};
  dtrun_backend backend_{};
  dtrun_launcher launcher_{};
  dtrun_device device_{};
};

// Loads each file once; later calls return the same result, including errors. The Plugin lives as
// long as the process. Errors name path, plugin, both ABI versions if relevant, and one next step.
// `in_probe` is passed to the plugin in dtrun_host.
Result<const Plugin*> Load(const File& file, bool in_probe = false);

// The backends that one with these options stands on, each before those below it; loads them.
Result<std::vector<const Plugin*>> LoadBelow(const dtrun_options& options, bool in_probe);
// The ids of a backend and of all that it stands on, as one text: "<id>|gloo=<id>"; loads these.
Result<std::string> StackId(const Plugin& plugin, const dtrun_options& options);
// Requires of the backends that `options` name the ids of such a text; returns the first id.
std::string RequireStack(std::string_view id, dtrun_options* options);

// ---- describe ---------------------------------------------------------------------------

// A plugin's description of itself, as plain data.
struct Description {
  File file;
  std::string version, vendor, license, summary;
  std::string abi;                   // "0.1"
  std::vector<std::string> members;  // optional members of a launcher: "plan", "find_hosts", "connect"
  options::Schema options;
  void Fields(auto& io) {
    io("name", file.name);  // the parent knows the rest
    io("version", version);
    io("vendor", vendor);
    io("license", license);
    io("summary", summary);
    io("abi", abi);
    io("members", members, wire::kMostEntries);
    io("options", options, wire::kMostEntries);
  }
};

struct LaunchInfo {
  std::vector<std::pair<std::string, std::string>> facts;  // "library", "interface", ...
  std::vector<std::pair<std::string, std::string>> env;    // for every rank
  std::string file_id = {};                                // of the answering plugin (FileId)
  void Fields(auto& io) {
    io("facts", facts, wire::kMostEntries);
    io("env", env, wire::kMostEntries);
    io("file_id", file_id);
  }
};

// Why the backend or device cannot be used on this host, from its fact of that name; empty if it can.
std::string Unusable(const LaunchInfo& info);

// A child process that loads one plugin, so that a plugin's crash is reported as an error and the
// launching process never loads plugins. Runs `<self> --probe-plugin KIND PATH NAME ID` of the
// executable given to SetProbeProgram. Exchanges frames over a socketpair; each answer is due
// in 10 s. Start it from a thread that outlives it: the child dies with that thread. Not shared
// between threads.
class Probe {
 public:
  // `environment`: the child's, as "NAME=value"; empty: this process's own.
  static Result<std::unique_ptr<Probe>> Start(const File& file,
                                              const std::vector<std::string>& environment = {});
  // The two halves of Start, so that several plugins load in parallel: Begin does not wait.
  static Result<std::unique_ptr<Probe>> Begin(const File& file,
                                              const std::vector<std::string>& environment = {});
  Status Describe();
  // Asks the child to exit without waiting; no requests may follow. The destructor waits until the child and
  // everything that it started are gone, and kills them if necessary.
  void BeginEnd();
  ~Probe();
  // REQUIRES: Describe succeeded
  const Description& description() const { return description_; }
  const File& file() const { return description_.file; }
  // The end of what the plugin and its library have written to standard output and error.
  std::string Written();
  // Calls init, launch_info and shutdown with these options. Empty if the plugin has neither. REQUIRES: a
  // backend
  Result<LaunchInfo> Launch(const dtrun_options& options, int host_count, int local_ranks);
  // Calls init, count, describe for each device and shutdown, with default options. Returns the facts `kind`,
  // `devices` (their number) and `device N`, or `unusable`. REQUIRES: a device plugin
  Result<LaunchInfo> Devices();
  // Calls init, plan and shutdown. The answer is only checked to be startable on some system; the caller
  // checks that it fits the job. REQUIRES: a launcher
  Result<LaunchPlan> Plan(const dtrun_options& options, const LaunchJob& job);
  // Calls init, find_hosts and shutdown. DTRUN_NOT_FOUND: its platform is absent. REQUIRES: a
  // launcher
  Result<hosts::Allocation> FindHosts(const dtrun_options& options, const hosts::Environment& environment);
  // Calls init, connect and shutdown. Every host is in one of the commands. REQUIRES: a launcher
  Result<std::vector<hosts::StartCommand>> Connect(const dtrun_options& options,
                                                   const ConnectRequest& request);

 private:
  Probe() = default;
  Result<std::string> Ask(const std::string& request, std::string_view doing);
  struct Child;
  std::unique_ptr<Child> child_;
  Description description_;
};

// The child's main. Call it first in main(); returns -1 if argv does not request a probe.
int ProbeMain(int argc, char** argv);
// The program to run as the probe; default: /proc/self/exe.
void SetProbeProgram(const std::filesystem::path& program);
// Time limit for one answer. For tests.
void SetProbeDeadline(Nanoseconds deadline);

}  // namespace dtrun::plugin
