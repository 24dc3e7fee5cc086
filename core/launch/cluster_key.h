// The key of hosts that somebody else starts (cluster.connect = "manual"): where the user has put it, and
// the default if there is none.
//
// Whoever knows the key can be the root, whose program then runs on every host, or join and read the
// environment. Main thread.
#pragma once

#include <string>

#include "core/config/settings.h"
#include "core/protocol/key.h"

namespace dtrun::launch {

// The variable with the key of a cluster whose hosts are started by somebody else. No rank sees it.
inline constexpr char kClusterKey[] = "DTRUN_CLUSTER_KEY";

// What is done without a key of the user's.
struct KeyRule {
  enum class Otherwise {
    kRefuse,
    kText,      // made from `text`, which only the job's hosts know
    kThisHost,  // all hosts are this machine: a secret that only this user can read
  };
  Otherwise otherwise = Otherwise::kRefuse;
  std::string text;
  std::string origin;   // where the user looks when keys differ: "--rdzv-id"
  std::string refusal;  // empty: the one of cluster.connect = "manual"
  // Mixed into a key that may serve several jobs, so that the hosts of one do not meet those of another.
  std::string job;
  std::string job_origin = {};  // what the user gave that names this job: "--rdzv-id=a"
};

struct ClusterKey {
  protocol::Key key;
  std::string origin;  // for errors; never the key itself
};

// cluster.key_file, else DTRUN_CLUSTER_KEY, else the file ~/.dtrun/key, else by the rule.
Result<ClusterKey> FindClusterKey(const config::Settings& settings, const KeyRule& rule);

// Whether the user has given a key in one of these three places.
bool HasClusterKey(const config::Settings& settings);

}  // namespace dtrun::launch
