// What a host finds when it tries something before a job starts there: the backends that a list
// offers, and what `dtrun doctor` looks at.
//
// Values that travel between root and agents as JSON; any thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/plugin/plugin.h"

namespace dtrun::preflight {

struct BackendRequest {
  std::string name;
  std::string path;          // of the plugin file, the same on all hosts
  std::string options_json;  // options::ToJson of its snapshot
  std::string why_not;       // known already: the root could not load it
  bool wanted = true;        // the job asks for it, alone or in a list
  bool pmix = false;         // its ranks are served PMIx, so the host needs libpmix
  std::string file_id = {};  // that its file must have; empty: any
  bool needed = false;       // no other will do in its place
};

struct ModuleRequest {
  std::vector<std::string> names;  // of Python modules; empty: none
  std::string interpreter = {};
  std::string folder = {};                            // of the ranks
  std::map<std::string, std::string> variables = {};  // of theirs, those that Python reads
};

struct Request {
  std::vector<BackendRequest> backends;
  int host_count = 1;
  int local_ranks = 1;
  ModuleRequest modules = {};
  // For `dtrun doctor`: the host is looked at as a whole.
  bool checks = false;
  std::vector<std::string> host_names = {};           // that every host must know
  int host = 0;                                       // index of the one asked
  int master_port = 0;                                // to be free on host 0; 0: any
  std::string program = {};                           // first word of the ranks' command; empty: not known
  std::string folder = {};                            // their working directory; empty: not known
  std::string search_path = {};                       // their PATH
  std::map<std::string, std::string> variables = {};  // of theirs, those that name interfaces
};

struct BackendAnswer {
  std::string name;
  std::string why_not = {};      // empty: it can be used there
  std::string library = {};      // name and version, and what it says of peer access between GPUs
  plugin::LaunchInfo info = {};  // all that it says for its ranks there
};

enum class Level { kNotHere, kOk, kWarning, kProblem };  // kNotHere: what nobody needs is not usable there

// One thing that was looked at.
struct Check {
  std::string topic;  // "names", "limits", "backend gloo"
  Level level = Level::kOk;
  std::string what;
  std::string fix = {};  // of a warning or a problem
};

struct Answer {
  std::vector<BackendAnswer> backends;  // in the order of the request
  std::vector<Check> checks = {};
  std::string missing_modules = {};  // as MissingModules says it
  double clock_seconds = 0;          // since 1970, by the clock of that host
};

// "ok", "warning", "problem"
const char* LevelName(Level level);

// Asks every backend in a child process, which takes a while; then looks at the host.
// `environment`: what the ranks would start from, "NAME=value"; empty: this process's own.
Answer RunPreflight(const Request& request, const std::vector<std::string>& environment = {});

// The same between root and agent. A request that cannot be read is answered with the error.
std::string RunPreflight(const std::string& request, const std::vector<std::string>& environment = {});

std::string Encode(const Request& request);
std::string Encode(const Answer& answer);
Result<Request> DecodeRequest(const std::string& text);
Result<Answer> DecodeAnswer(const std::string& text);

}  // namespace dtrun::preflight
