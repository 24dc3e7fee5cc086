// What the host gives to a layer: parts of a communicator's key-value space.
//
// A layer knows a kv only as a handle for the kv service, so the host that it was made with
// (LayerHost in hierarchy.h) brings a service that distinguishes parts from whole spaces. Any thread.
#pragma once

#include <string>

#include "dtrun/abi/host.h"

namespace dtrun::comm {

// The keys of `whole` that begin with a prefix. `whole` outlives it.
class KvPart {
 public:
  KvPart(dtrun_kv* whole, std::string prefix);
  ~KvPart();
  KvPart(const KvPart&) = delete;
  KvPart& operator=(const KvPart&) = delete;

  // For plugins that were made with LayerHost.
  dtrun_kv* raw() { return reinterpret_cast<dtrun_kv*>(this); }
  dtrun_kv* whole() const { return whole_; }
  const std::string& prefix() const { return prefix_; }

 private:
  dtrun_kv* const whole_;
  const std::string prefix_;
};

// From now on layers report no peers to core.
void MuteLayers();

}  // namespace dtrun::comm
