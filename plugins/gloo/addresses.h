// The addresses at which a rank waits for the others, in the few bytes that differ between them.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "dtrun/interfaces.hpp"
#include "dtrun/plugin.hpp"

namespace dtrun::gloo_plugin {

// The address on `interface` at which a rank listens. The loopback network has 2^24 of them, so
// ranks of one host do not search for ports that others have left free.
inline std::string ListenAddress(const interfaces::Interface& interface, int rank) {
  if (interface.address != "127.0.0.1" || rank >= 1 << 16) return interface.address;
  return "127.1." + std::to_string(rank >> 8) + "." + std::to_string(rank & 0xff);
}

// The places where not all strings agree.
inline std::string Differences(const std::vector<std::string>& all) {
  std::string places;
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    for (const std::string& one : all) {
      if (one[i] == all.front()[i]) continue;
      places += static_cast<char>(i);
      break;
    }
  }
  return places;
}

// REQUIRES at least one; all of one length below 256. Number of such places, length, the first address, the
// places, then what each address has there.
inline std::string PackAddresses(const std::vector<std::string>& addresses) {
  const std::string places = Differences(addresses);
  std::string packed;
  packed += static_cast<char>(places.size());
  packed += static_cast<char>(addresses.front().size());
  packed += addresses.front();
  packed += places;
  for (const std::string& address : addresses) {
    for (const char place : places) packed += address[static_cast<std::uint8_t>(place)];
  }
  return packed;
}

// Number `index` of them. Throws sdk::Failure when `packed` has no such address.
inline std::string UnpackAddress(const std::string& packed, std::size_t index) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(packed.at(at)); };
  try {
    const std::size_t places = byte(0), length = byte(1), first = 2 + length;
    std::string address = packed.substr(2, length);
    for (std::size_t i = 0; i < places; ++i)
      address.at(byte(first + i)) = packed.at(first + places + index * places + i);
    if (address.size() == length) return address;
  } catch (const std::out_of_range&) {
    // Falls through to the one sentence for everything that is too short.
  }
  throw sdk::Failure(DTRUN_INTERNAL,
                     "the addresses of another rank are cut short; all ranks must run the same version of "
                     "the gloo plugin");
}

}  // namespace dtrun::gloo_plugin
