// Finds the key of manually started hosts (cluster.connect = "manual"), or applies the default if the user
// has given none.
//
// The key admits a process as the root, which runs its program on every host, or as a host, which can read
// the environment. Main thread.
#pragma once

#include <string>

#include "core/protocol/tls.h"
#include "core/spec/job_spec.h"

namespace dtrun::launch {

// The variable with the key of a manually started cluster. Removed from the ranks' environment.
inline constexpr char kClusterKey[] = "DTRUN_CLUSTER_KEY";

// The default if the user has given no key.
struct KeyRule {
  enum class Otherwise {
    kRefuse,
    kText,      // derived from `text`, which only the job's hosts know
    kThisHost,  // all hosts are this machine: a secret that only this user can read
  };
  Otherwise otherwise = Otherwise::kRefuse;
  std::string text;
  std::string origin;   // where to look if keys differ: "--rdzv-id"
  std::string refusal;  // empty: the error of cluster.connect = "manual"
  // Mixed into a key that may serve several jobs, so that hosts of different jobs cannot join each other.
  std::string job;
  std::string job_origin = {};  // the user's name for this job: "--rdzv-id=a"
};

struct ClusterKey {
  protocol::Key key;
  std::string origin;  // for errors; never the key itself
};

// cluster.key_file, else DTRUN_CLUSTER_KEY, else the file ~/.dtrun/key, else the rule.
Result<ClusterKey> FindClusterKey(const spec::JobSpec& spec, const KeyRule& rule);

// The text in a file that only this user can read, without surrounding spaces. `name`: the file's, with the
// option that named it: "cluster.key_file '/k'".
Result<std::string> ReadKeyFile(const std::string& path, const std::string& name);

// Whether the user has given a key in one of the first three.
bool HasClusterKey(const spec::JobSpec& spec);

}  // namespace dtrun::launch
