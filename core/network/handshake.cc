#include "core/network/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdlib>
#include <cstring>

namespace dtrun::network {
namespace {

constexpr std::size_t kSealBytes = 32;
constexpr std::size_t kKeyBytes = 32;

std::string Seal(const std::string& key, std::string_view label, std::string_view bytes) {
  const std::string message = std::string(label).append(bytes);
  std::string seal(kSealBytes, '\0');
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(seal.data()), &size) == nullptr) {
    std::abort();  // SHA-256 is always available, and nothing else can fail
  }
  return seal;
}

// `bytes` without the seal at their end, if it is valid.
std::optional<std::string_view> Opened(const std::string& key, std::string_view label,
                                       std::string_view bytes) {
  if (bytes.size() < kSealBytes) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - kSealBytes);
  const std::string seal = Seal(key, label, body);
  if (CRYPTO_memcmp(seal.data(), bytes.data() + body.size(), kSealBytes) != 0) return std::nullopt;
  return body;
}

void FillRandomly(char* bytes, std::size_t size) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes), static_cast<int>(size)) != 1) {
    std::abort();  // no check without randomness
  }
}

std::string_view View(const Challenge& challenge) { return {challenge.data(), challenge.size()}; }

std::string LabelOf(const Challenge& challenge) { return std::string("answer").append(View(challenge)); }

}  // namespace

Challenge NewChallenge() {
  Challenge challenge;
  FillRandomly(challenge.data(), challenge.size());
  return challenge;
}

std::string NewConnectivityKey() {
  std::string key(kKeyBytes, '\0');
  FillRandomly(key.data(), key.size());
  return key;
}

std::string HelloBytes(const std::string& key, const Hello& hello) {
  std::string bytes(reinterpret_cast<const char*>(&hello.from), sizeof hello.from);
  bytes.append(View(hello.challenge));
  bytes += static_cast<char>(hello.purpose);
  return bytes + Seal(key, "handshake", bytes);
}

std::optional<Hello> ReadHello(const std::string& key, std::string_view bytes) {
  if (bytes.size() != kHelloBytes) return std::nullopt;
  const auto body = Opened(key, "handshake", bytes);
  if (!body) return std::nullopt;
  Hello hello;
  std::memcpy(&hello.from, body->data(), sizeof hello.from);
  std::memcpy(hello.challenge.data(), body->data() + sizeof hello.from, hello.challenge.size());
  hello.purpose = body->back() == static_cast<char>(Purpose::kBandwidthProbe) ? Purpose::kBandwidthProbe
                                                                              : Purpose::kReach;
  return hello;
}

std::string AnswerBytes(const std::string& key, const Challenge& challenge, std::uint32_t host) {
  const std::string bytes(reinterpret_cast<const char*>(&host), sizeof host);
  return bytes + Seal(key, LabelOf(challenge), bytes);
}

std::optional<std::uint32_t> ReadAnswer(const std::string& key, const Challenge& challenge,
                                        std::string_view bytes) {
  if (bytes.size() != kAnswerBytes) return std::nullopt;
  const auto body = Opened(key, LabelOf(challenge), bytes);
  if (!body) return std::nullopt;
  std::uint32_t host = 0;
  std::memcpy(&host, body->data(), sizeof host);
  return host;
}

}  // namespace dtrun::network
