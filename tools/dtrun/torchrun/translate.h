// What a torchrun command line means in dtrun's settings.
//
// Pure; any thread. Every setting keeps the option or variable that asked for it as its
// origin, so that errors and `dtrun config explain` name what the user typed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/cluster.h"
#include "tools/dtrun/torchrun/secret.h"

namespace dtrun::torchrun {

// What the translation may know of the machine.
struct Surroundings {
  std::map<std::string, std::string> environment;
  std::string log_base;                    // folder for logs where --log-dir is not given
  std::string random;                      // makes the folder of this run unique
  std::string uuid;                        // names a job that has no other name
  std::optional<std::string> script_text;  // of the training script, when it could be read
  MeetHere meet_here;
  std::function<bool(const std::string& host)> leads_here = [](const std::string&) { return true; };
  std::vector<std::string> addresses = {};  // of this host, for messages
};

struct Translation {
  std::vector<config::Given> base;   // torchrun's own defaults: the user's config is above them
  std::vector<config::Given> given;  // what was asked for
  std::vector<std::string> notes;    // lines for the user
  bool keeps_logs = true;            // false: --log-dir is the null device
  Secret secret;                     // of the nodes, when the user shares no key
  std::string run_id;
};

// Errors begin with the option's name.
Result<Translation> Translate(const Arguments& arguments, const Surroundings& surroundings);

}  // namespace dtrun::torchrun
