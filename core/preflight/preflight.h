// The results of checks on a host before a job starts there: of the backends in a list, and of `dtrun
// doctor`.
//
// Values that travel between root and agents (core/protocol/messages.h); any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/plugin/plugin.h"
#include "core/wire/limits.h"

namespace dtrun::preflight {

// What a plugin says of itself on a host: "library", "interface", ...
using Facts = std::vector<std::pair<std::string, std::string>>;
// One of them; empty: there is none.
std::string FactOf(const Facts& facts, std::string_view key);

struct BackendRequest {
  std::string name;
  std::string path;          // path of the plugin file, the same on all hosts
  std::string options_json;  // options::ToJson of its snapshot
  std::string why_not;       // already known: the root could not load it
  bool wanted = true;        // the job requests it, alone or in a list
  bool pmix = false;         // its ranks use PMIx, so the host needs libpmix
  std::string file_id = {};  // required id of its file; empty: any
  bool needed = false;       // no other backend can replace it
  void Fields(auto& io) {
    io("name", name);
    io("path", path);
    io("options_json", options_json);
    io("why_not", why_not);
    io("wanted", wanted);
    io("pmix", pmix);
    io("file_id", file_id);
    io("needed", needed);
  }
};

struct ModuleRequest {
  std::vector<std::string> names;  // of Python modules; empty: none
  std::string interpreter = {};
  std::string folder = {};                            // of the ranks
  std::map<std::string, std::string> variables = {};  // the ranks' variables that Python reads
  void Fields(auto& io) {
    io("names", names, wire::kMostEntries);
    io("interpreter", interpreter);
    io("folder", folder);
    io("variables", variables, wire::kMostEntries);
  }
};

struct Request {
  std::vector<BackendRequest> backends;
  int host_count = 1;
  int local_ranks = 1;
  ModuleRequest modules = {};
  // For `dtrun doctor`: check the whole host.
  bool checks = false;
  std::vector<std::string> host_names = {};           // names that every host must resolve
  int host = 0;                                       // index of the host that gets this request
  int master_port = 0;                                // must be free on host 0; 0: any
  std::string program = {};                           // first word of the ranks' command; empty: unknown
  std::string folder = {};                            // their working directory; empty: unknown
  std::string search_path = {};                       // their PATH
  std::map<std::string, std::string> variables = {};  // the ranks' variables that name interfaces
  void Fields(auto& io) {
    io("backends", backends, wire::kMostEntries);
    io("host_count", host_count);
    io("local_ranks", local_ranks);
    io("modules", modules);
    io("checks", checks);
    io("host_names", host_names, wire::kMostHosts);
    io("host", host);
    io("master_port", master_port);
    io("program", program);
    io("folder", folder);
    io("search_path", search_path);
    io("variables", variables, wire::kMostEntries);
  }
};

struct BackendAnswer {
  std::string name;
  std::string why_not = {};      // empty: usable there
  std::string library = {};      // name, version, and its text about peer access between GPUs
  plugin::LaunchInfo info = {};  // its complete launch info for ranks there
  void Fields(auto& io) {
    io("name", name);
    io("why_not", why_not);
    io("library", library);
    io("info", info);
  }
};

enum class Level { kNotHere, kOk, kWarning, kProblem };  // kNotHere: not usable there, but not needed

// The result of one check.
struct Check {
  std::string topic;  // "names", "limits", "backend gloo"
  Level level = Level::kOk;
  std::string what;
  std::string fix = {};  // for a warning or a problem
  void Fields(auto& io) {
    io("topic", topic);
    io("level", level, wire::Between{Level::kNotHere, Level::kProblem});
    io("what", what);
    io("fix", fix);
  }
};

struct Answer {
  std::vector<BackendAnswer> backends;  // in the order of the request
  std::vector<Check> checks = {};
  std::string missing_modules = {};  // result of MissingModules
  double clock_seconds = 0;          // Unix time by that host's clock
  void Fields(auto& io) {
    io("backends", backends, wire::kMostEntries);
    io("checks", checks, wire::kMostEntries);
    io("missing_modules", missing_modules);
    io("clock_seconds", clock_seconds);
  }
};

using AnswersByHost = std::vector<std::pair<std::string, Answer>>;  // with the hosts' names

// "ok", "warning", "problem"
const char* LevelName(Level level);

// Queries every backend in a child process, which takes a while; then checks the host. `environment`: the
// ranks' base environment, "NAME=value"; empty: this process's own.
Answer RunPreflight(const Request& request, const std::vector<std::string>& environment = {});

}  // namespace dtrun::preflight
