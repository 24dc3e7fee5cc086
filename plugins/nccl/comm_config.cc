#include "comm_config.h"

#include <algorithm>
#include <iterator>

namespace dtrun::nccl_plugin {
namespace {

using nccl::Config;
using nccl::Version;
using sdk::Options;

std::optional<int> Number(const Options& options, const char* key) {
  const auto value = options.FindInt(key);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

// "auto", "on", "off".
std::optional<int> OnOrOff(const Options& options, const char* key) {
  const int index = options.EnumIndex(key);
  if (index == 0) return std::nullopt;
  return index == 1 ? 1 : 0;
}

// "auto", and then what NCCL counts from 1.
std::optional<int> FromOne(const Options& options, const char* key) {
  const int index = options.EnumIndex(key);
  if (index == 0) return std::nullopt;
  return index;
}

// "auto", and then what NCCL counts from 0.
std::optional<int> FromZero(const Options& options, const char* key) {
  const int index = options.EnumIndex(key);
  if (index == 0) return std::nullopt;
  return index - 1;
}

struct Setting {
  const char* option;
  int since;
  int Config::*member;
  std::optional<int> (*read)(const Options&, const char* key);
};

// In the order of the structure.
constexpr Setting kSettings[] = {
    {"cga_cluster_size", Version(2, 18, 0), &Config::cga_cluster_size, &Number},
    {"min_ctas", Version(2, 18, 0), &Config::min_ctas, &Number},
    {"max_ctas", Version(2, 18, 0), &Config::max_ctas, &Number},
    {"traffic_class", Version(2, 26, 0), &Config::traffic_class, &Number},
    {"collnet", Version(2, 27, 0), &Config::collnet_enable, &OnOrOff},
    {"cta_policy", Version(2, 27, 0), &Config::cta_policy, &FromOne},
    {"nvls_ctas", Version(2, 27, 0), &Config::nvls_ctas, &Number},
    {"channels_per_net_peer", Version(2, 28, 0), &Config::channels_per_net_peer, &Number},
    {"nvlink_centric_sched", Version(2, 28, 0), &Config::nvlink_centric_sched, &OnOrOff},
    {"graph_usage", Version(2, 29, 0), &Config::graph_usage_mode, &FromZero},
    {"max_p2p_peers", Version(2, 30, 0), &Config::max_p2p_peers, &Number},
};

constexpr int kCtaPolicyZero = 2;  // NCCL_CTA_POLICY_ZERO
constexpr int kCtaPolicyZeroSince = Version(2, 28, 0);

void Require(const std::string& what, int since, int version) {
  if (version >= since) return;
  throw sdk::Failure(DTRUN_UNSUPPORTED, what + " needs NCCL " + NcclVersionText(since) +
                                            " or newer, and this is " + NcclVersionText(version) +
                                            "; remove it, or set backend.nccl.library to a newer one");
}

}  // namespace

CommConfig::CommConfig(const Options& options, int nccl_version) : net_name_(options.FindString("net_name")) {
  for (const Setting& setting : kSettings) {
    const std::optional<int> value = setting.read(options, setting.option);
    if (!value) continue;
    const std::string what = std::string("backend.options.") + setting.option;
    Require(what, setting.since, nccl_version);
    if (setting.member == &Config::cta_policy && *value == kCtaPolicyZero)
      Require(what + " = \"zero\"", kCtaPolicyZeroSince, nccl_version);
    values_.push_back({setting.since, setting.member, *value});
  }
  const auto least = options.FindInt("min_ctas"), most = options.FindInt("max_ctas");
  if (least && most && *least > *most) {
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "backend.options.min_ctas is " + std::to_string(*least) +
                                                   ", more than max_ctas, which is " + std::to_string(*most) +
                                                   "; lower it");
  }
}

nccl::Config CommConfig::Get() const {
  Config config;
  if (net_name_) config.net_name = net_name_->c_str();
  for (const Value& value : values_) {
    config.*value.member = value.value;
    if (value.since <= static_cast<int>(config.version)) continue;
    config.version = static_cast<unsigned>(value.since);
    config.size = sizeof(Config);  // what it holds beyond that version, NCCL ignores
  }
  return config;
}

}  // namespace dtrun::nccl_plugin
