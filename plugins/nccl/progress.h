// How far a rank has come: which calls it has started. A value; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>

namespace dtrun::nccl_plugin {

struct Progress {
  std::uint64_t collective = 0;           // sequence number of the last one
  std::map<int, std::uint64_t> messages;  // to and from each peer

  // For the key-value space.
  std::string Encode() const {
    std::ostringstream text;
    text << collective;
    for (const auto& [peer, count] : messages) text << ' ' << peer << ' ' << count;
    return text.str();
  }
  static Progress Decode(const std::string& encoded) {
    std::istringstream text(encoded);
    Progress progress;
    text >> progress.collective;
    int peer = 0;
    std::uint64_t count = 0;
    while (text >> peer >> count) progress.messages[peer] = count;
    return progress;
  }
};

}  // namespace dtrun::nccl_plugin
