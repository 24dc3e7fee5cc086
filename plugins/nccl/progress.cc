#include "progress.h"

#include <sstream>

namespace dtrun::nccl_plugin {

std::string Progress::Encode() const {
  std::ostringstream text;
  text << collective;
  for (const auto& [peer, count] : messages) text << ' ' << peer << ' ' << count;
  return text.str();
}

Progress Progress::Decode(const std::string& encoded) {
  std::istringstream text(encoded);
  Progress progress;
  text >> progress.collective;
  int peer = 0;
  std::uint64_t count = 0;
  while (text >> peer >> count) progress.messages[peer] = count;
  return progress;
}

}  // namespace dtrun::nccl_plugin
