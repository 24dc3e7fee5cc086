// What a communicator of NCCL can be configured with, as far as the options set it: what is unset stays
// NCCL's own choice, and a library gets no more of the structure than is set.
//
// A value; constant once made. Any thread.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "dtrun/plugin.hpp"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {

// How options are read, and which there are.
namespace config {

using nccl::Config;
using nccl::Version;
using sdk::Options;

// What the value of an option is to NCCL: the number itself, or the index of a choice, of which the first is
// "auto".
enum class Read { kNumber, kOnOrOff, kFromOne, kFromZero };

struct Setting {
  const char* option;
  int since;
  int Config::*member;
  Read read;

  // Unset: NCCL's own choice.
  std::optional<int> Find(const Options& options) const {
    if (read == Read::kNumber) {
      const auto value = options.FindInt(option);
      return value ? std::make_optional(static_cast<int>(*value)) : std::nullopt;
    }
    const int index = options.EnumIndex(option);
    if (index == 0) return std::nullopt;
    return read == Read::kOnOrOff ? 2 - index : read == Read::kFromOne ? index : index - 1;
  }
};

// In the order of the structure.
inline constexpr Setting kSettings[] = {
    {"cga_cluster_size", Version(2, 18, 0), &Config::cga_cluster_size, Read::kNumber},
    {"min_ctas", Version(2, 18, 0), &Config::min_ctas, Read::kNumber},
    {"max_ctas", Version(2, 18, 0), &Config::max_ctas, Read::kNumber},
    {"traffic_class", Version(2, 26, 0), &Config::traffic_class, Read::kNumber},
    {"collnet", Version(2, 27, 0), &Config::collnet_enable, Read::kOnOrOff},
    {"cta_policy", Version(2, 27, 0), &Config::cta_policy, Read::kFromOne},
    {"nvls_ctas", Version(2, 27, 0), &Config::nvls_ctas, Read::kNumber},
    {"channels_per_net_peer", Version(2, 28, 0), &Config::channels_per_net_peer, Read::kNumber},
    {"nvlink_centric_sched", Version(2, 28, 0), &Config::nvlink_centric_sched, Read::kOnOrOff},
    {"graph_usage", Version(2, 29, 0), &Config::graph_usage_mode, Read::kFromZero},
    {"max_p2p_peers", Version(2, 30, 0), &Config::max_p2p_peers, Read::kNumber},
};

inline constexpr int kCtaPolicyZero = 2;  // NCCL_CTA_POLICY_ZERO
inline constexpr int kCtaPolicyZeroSince = Version(2, 28, 0);

inline void Require(const std::string& what, int since, int version) {
  if (version >= since) return;
  throw sdk::Failure(DTRUN_UNSUPPORTED, what + " needs NCCL " + NcclVersionText(since) +
                                            " or newer, and this is " + NcclVersionText(version) +
                                            "; remove it, or set backend.nccl.library to a newer one");
}

}  // namespace config

class CommConfig {
 public:
  // Throws sdk::Failure where an option is set that a library of that version does not know, or that
  // contradicts another.
  CommConfig(const sdk::Options& options, int nccl_version) : net_name_(options.FindString("net_name")) {
    for (const config::Setting& setting : config::kSettings) {
      const std::optional<int> value = setting.Find(options);
      if (!value) continue;
      const std::string what = std::string("backend.options.") + setting.option;
      config::Require(what, setting.since, nccl_version);
      if (setting.member == &nccl::Config::cta_policy && *value == config::kCtaPolicyZero)
        config::Require(what + " = \"zero\"", config::kCtaPolicyZeroSince, nccl_version);
      config_.*setting.member = *value;
      if (setting.since <= static_cast<int>(config_.version)) continue;
      config_.version = static_cast<unsigned>(setting.since);
      config_.size = sizeof config_;  // what it holds beyond that version, NCCL ignores
    }
    const auto least = options.FindInt("min_ctas"), most = options.FindInt("max_ctas");
    if (least && most && *least > *most) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "backend.options.min_ctas is " + std::to_string(*least) +
                                                     ", more than max_ctas, which is " +
                                                     std::to_string(*most) + "; lower it");
    }
  }

  // For ncclCommInitRankConfig; valid as long as this.
  nccl::Config Get() const {
    nccl::Config config = config_;
    if (net_name_) config.net_name = net_name_->c_str();
    return config;
  }

 private:
  nccl::Config config_;
  std::optional<std::string> net_name_;
};

}  // namespace dtrun::nccl_plugin
