// The key-value space of a communicator in the shape that Gloo's rendezvous asks for.
//
// Lives on the stack of the thread that connects. Keys are prefixed with "gloo/". Every
// wait ends at the deadline given here; Gloo's own timeouts are ignored.
#pragma once

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <string>
#include <vector>

#include "deadline.h"
#include "dtrun/plugin.hpp"

namespace dtrun::gloo_plugin {

class KvStore final : public ::gloo::rendezvous::Store {
 public:
  KvStore(const sdk::Kv& kv, Deadline deadline) : kv_(kv), deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

  // The rank whose address Gloo read last: the one it connects to. -1 before.
  int last_rank() const { return last_rank_; }

 private:
  const sdk::Kv& kv_;
  const Deadline deadline_;
  int last_rank_ = -1;
};

}  // namespace dtrun::gloo_plugin
