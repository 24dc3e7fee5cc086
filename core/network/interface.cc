#include "core/network/interface.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "core/base/read_file.h"

namespace dtrun::network {
namespace {

namespace fs = std::filesystem;

// RoCE ports name their interface; InfiniBand ports share the card.
bool Belongs(const fs::path& port, const std::string& name, bool same_card) {
  bool named = false;
  for (const fs::path& entry : EntriesOf(port / "gid_attrs/ndevs")) {
    const std::string interface = FirstLineOf(entry);
    if (interface == name) return true;
    named = named || !interface.empty();
  }
  return same_card && !named;
}

}  // namespace

const char* KindText(Kind kind) {
  constexpr const char* kTexts[] = {"loopback", "physical", "bond",   "vlan",
                                    "bridge",   "veth",     "tunnel", "virtual"};
  return kTexts[static_cast<std::size_t>(kind)];
}

bool Address::link_local() const {
  return ip.is_v6() ? ip.to_v6().is_link_local() : InNetwork(ip, asio::ip::make_address("169.254.0.0"), 16);
}

std::string Address::Text() const { return fmt::format("{}/{}", ip.to_string(), prefix); }

bool InNetwork(const Ip& ip, const Ip& network, int prefix) {
  const auto same = [prefix](const auto& a, const auto& b) {
    for (int bit = 0; bit < prefix; ++bit) {
      const auto byte = static_cast<std::size_t>(bit / 8);
      if (((a[byte] ^ b[byte]) >> (7 - bit % 8) & 1) != 0) return false;
    }
    return true;
  };
  if (ip.is_v4() && network.is_v4()) return same(ip.to_v4().to_bytes(), network.to_v4().to_bytes());
  return ip.is_v6() && network.is_v6() && same(ip.to_v6().to_bytes(), network.to_v6().to_bytes());
}

std::string ListText(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& one : interfaces) {
    std::string more;
    for (const Address& address : one.addresses) more += (more.empty() ? "" : " ") + address.Text();
    if (more.empty()) more = "no address";
    if (!one.up || !one.carrier) more += one.up ? ", no carrier" : ", down";
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.name, more);
  }
  return text.empty() ? "none" : text;
}

Kind KindOf(const std::string& type, bool loopback, const std::string& bus) {
  using Entry = std::pair<std::string_view, Kind>;
  static constexpr auto kKinds = std::to_array<Entry>(
      {{"bond", Kind::kBond},        {"team", Kind::kBond},     {"vlan", Kind::kVlan},
       {"bridge", Kind::kBridge},    {"veth", Kind::kVeth},     {"tun", Kind::kTunnel},
       {"wireguard", Kind::kTunnel}, {"vxlan", Kind::kTunnel},  {"geneve", Kind::kTunnel},
       {"gre", Kind::kTunnel},       {"gretap", Kind::kTunnel}, {"ip6gre", Kind::kTunnel},
       {"ip6gretap", Kind::kTunnel}, {"ipip", Kind::kTunnel},   {"ip6tnl", Kind::kTunnel},
       {"sit", Kind::kTunnel},       {"vti", Kind::kTunnel},    {"vti6", Kind::kTunnel},
       {"ppp", Kind::kTunnel},       {"xfrm", Kind::kTunnel}});
  if (loopback) return Kind::kLoopback;
  for (const auto& [name, kind] : kKinds) {
    if (name == type) return kind;
  }
  return type.empty() && !bus.empty() ? Kind::kPhysical : Kind::kVirtual;
}

bool HasRdma(const std::string& sys) { return !EntriesOf(fs::path(sys) / "class/infiniband").empty(); }

std::string RdmaPortOf(const std::string& sys, const std::string& name, const std::string& bus) {
  std::error_code error;
  for (const fs::path& card : EntriesOf(fs::path(sys) / "class/infiniband")) {
    const fs::path device = fs::canonical(card / "device", error);
    const bool same_card = !error && !bus.empty() && device.filename() == bus;
    for (const fs::path& port : EntriesOf(card / "ports")) {
      if (FirstLineOf(port / "state").find("ACTIVE") == std::string::npos) continue;
      if (Belongs(port, name, same_card)) {
        return card.filename().string() + ":" + port.filename().string();
      }
    }
  }
  return {};
}

}  // namespace dtrun::network
