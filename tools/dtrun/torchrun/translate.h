// Translates a torchrun command line into dtrun's spec.
//
// Pure; any thread. Every setting records the option or variable that caused it as its origin, so that errors
// and `dtrun config explain` show the user's own input.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/read.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/cluster.h"
#include "tools/dtrun/torchrun/secret.h"

namespace dtrun::torchrun {

// Facts about the machine for the translation.
struct Surroundings {
  std::map<std::string, std::string> environment;
  std::string log_base;                    // folder for logs without --log-dir
  std::string random;                      // makes the folder of this run unique
  std::string uuid;                        // names a job without another name
  std::optional<std::string> script_text;  // of the training script, if readable
  MeetHere meet_here;
  std::function<bool(const std::string& host)> leads_here = [](const std::string&) { return true; };
  std::vector<std::string> addresses = {};  // of this host, for messages
};

struct Translation {
  std::vector<spec::Given> base;   // torchrun's own defaults, overridden by the user's config
  std::vector<spec::Given> given;  // the user's options
  std::vector<std::string> notes;    // lines for the user
  bool keeps_logs = true;            // false: --log-dir is the null device
  Secret secret;                     // shared by the nodes, if the user shares no key
  std::string run_id;
};

// Errors begin with the option's name.
Result<Translation> Translate(const Arguments& arguments, const Surroundings& surroundings);

}  // namespace dtrun::torchrun
