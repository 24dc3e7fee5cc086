// How two hosts prove their identity when one connects to the other: a challenge and its answer, both
// authenticated with the key that the root created for this check.
//
// An open connection proves nothing: 172.17.0.1 is an address of every host with Docker, and a host that
// connects to it may reach itself. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtrun::network {

using Challenge = std::array<char, 16>;

enum class Purpose : std::uint8_t { kReach, kBandwidthProbe };

struct Hello {
  std::uint32_t from = 0;  // number of the connecting host
  Challenge challenge{};
  Purpose purpose = Purpose::kReach;
};

inline constexpr std::size_t kHelloBytes = 4 + 16 + 1 + 32;
inline constexpr std::size_t kAnswerBytes = 4 + 32;

Challenge NewChallenge();
// A random key for Seal, from the system.
std::string NewConnectivityKey();

// Returns kHelloBytes.
std::string HelloBytes(const std::string& key, const Hello& hello);
// nullopt if the sender does not know the key.
std::optional<Hello> ReadHello(const std::string& key, std::string_view bytes);

// Returns kAnswerBytes: host `host` has received this challenge.
std::string AnswerBytes(const std::string& key, const Challenge& challenge, std::uint32_t host);
// The number of the host that answered.
std::optional<std::uint32_t> ReadAnswer(const std::string& key, const Challenge& challenge,
                                        std::string_view bytes);

}  // namespace dtrun::network
