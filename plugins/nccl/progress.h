// How far a rank has come: which calls it has started. A value; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace dtrun::nccl_plugin {

struct Progress {
  std::uint64_t collective = 0;           // sequence number of the last one
  std::map<int, std::uint64_t> messages;  // to and from each peer

  // For the key-value space.
  std::string Encode() const;
  static Progress Decode(const std::string& text);
};

}  // namespace dtrun::nccl_plugin
