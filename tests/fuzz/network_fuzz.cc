// Any bytes as network.interface, as the value of a library's variable, and from a stranger who
// knocks while networks are being checked.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/network/handshake.h"
#include "core/network/rule.h"
#include "tests/fuzz/target.h"

namespace network_fuzz {

namespace network = dtrun::network;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::vector<network::Interface> Interfaces() {
  std::vector<network::Interface> all;
  for (const char* name : {"lo", "eth1", "eth10", "docker0"}) {
    network::Interface one;
    one.index = static_cast<int>(all.size()) + 1;
    one.name = name;
    one.kind = all.empty() ? network::Kind::kLoopback : network::Kind::kPhysical;
    one.up = one.carrier = true;
    const std::string last = std::to_string(one.index);
    one.addresses = {{dtrun::asio::ip::make_address(all.empty() ? "127.0.0.1" : "10.0.0." + last), 24},
                     {dtrun::asio::ip::make_address("fd00::" + last), 64}};
    all.push_back(one);
  }
  return all;
}

DTRUN_FUZZ_TARGET(network)(const std::uint8_t* data, std::size_t size) {
  static const std::vector<network::Interface> interfaces = Interfaces();
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto rule = network::Rule::Parse(text); rule.ok()) {
    if (const auto offer = rule->Apply(interfaces); offer.ok()) {
      Require(!offer->candidates.empty(), "an offer has a candidate");
      for (const auto& one : offer->candidates)
        Require(!one.address.ip.is_loopback(), "loopback is no candidate");
    } else {
      Require(!offer.error().text.empty(), "a refusal has a reason");
    }
  }
  const std::string key(32, 'k');
  Require(!network::ReadHello(key, text), "a seal was guessed");
  Require(!network::ReadAnswer(key, network::Challenge{}, text), "a seal was guessed");
  return 0;
}

}  // namespace network_fuzz
