// Translates a torchrun command line into dtrun's spec: the meeting point of the nodes, their secret, and the
// rest.
//
// Pure; any thread. Every setting records the option or variable that caused it as its origin, so that errors
// and `dtrun config explain` show the user's own input.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/read.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {

struct Rendezvous {
  std::string run_id;
  int nodes = 1;            // at the start of the job
  int most_nodes = 1;       // more than `nodes`: others may join later
  std::string host;         // of the endpoint; empty: a single node
  std::optional<int> port;  // where the nodes meet; single node: MASTER_PORT, unset for any free port
  // Index of this node. Unset: the root assigns it.
  std::optional<int> node;
  // As in rdzv_conf, in seconds; empty: not given.
  std::string join_timeout, last_call;
  bool insecure = false;  // the user accepts a job without a secret
};

// Whether a job's nodes would meet at this process: the host is this machine, and no dtrun uses the port.
using MeetHere = std::function<bool(const std::string& host, int port)>;

// `uuid`: the name of a job without another name.
Result<Rendezvous> RendezvousOf(const Arguments& arguments, const std::string& uuid,
                                const MeetHere& meet_here);

// The spec for several nodes and for restarts.
std::vector<spec::Given> ClusterSettings(const Arguments& arguments, const Rendezvous& rendezvous);

// Protects a multi-node job from outsiders if its user shares no key. Anyone with the key can act as the
// root, and the root's command runs on every node. torchrun scripts use run ids such as "none", a number or a
// plain word, which are easy to guess.
struct Secret {
  enum class From {
    kNothing,   // the job is rejected, for the reason `refusal`
    kRunId,     // the run id is hard to guess, or the user asked for it
    kThisHost,  // the nodes meet at a loopback address: only this user's processes may join
  };
  From from = From::kNothing;
  std::string refusal;
  std::string note;  // shown on every node; empty: nothing
};

Secret SecretOf(const Arguments& arguments, const Rendezvous& rendezvous);

// Whether it is hard to guess: 16 characters or more, including digits, as from `uuidgen` and `openssl rand
// -hex 16`.
bool IsHardToGuess(std::string_view run_id);

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
  std::vector<std::string> notes;  // lines for the user
  bool keeps_logs = true;          // false: --log-dir is the null device
  Secret secret;                   // shared by the nodes, if the user shares no key
  std::string run_id;
};

// Errors begin with the option's name.
Result<Translation> Translate(const Arguments& arguments, const Surroundings& surroundings);

}  // namespace dtrun::torchrun
