// The address at which an NCCL unique id says that rank 0 listens.
//
// NCCL chooses a network interface when it makes the id and writes the outcome into it: eight
// bytes of magic, then a sockaddr (struct ncclBootstrapHandle of src/include/bootstrap.h, 2.14 to
// 2.28). Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "nccl_abi.h"

namespace dtrun::nccl_plugin {

struct BootstrapAddress {
  std::string host;  // numeric: "10.0.0.5", "fd00::2"
  int port = 0;
  bool loopback = false;

  std::string Text() const;  // "10.0.0.5:4711", "[fd00::2]:4711"
};

// nullopt when the id holds no address, as one of a future NCCL may.
std::optional<BootstrapAddress> ReadBootstrapAddress(const nccl::UniqueId& id);

}  // namespace dtrun::nccl_plugin
