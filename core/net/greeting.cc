#include "core/net/greeting.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdlib>
#include <cstring>

namespace dtrun::net {
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
    std::abort();  // SHA-256 is always there, and nothing else can fail
  }
  return seal;
}

// `bytes` without the seal behind them, when it fits.
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
    std::abort();  // no randomness, no proof
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

std::string NewProofKey() {
  std::string key(kKeyBytes, '\0');
  FillRandomly(key.data(), key.size());
  return key;
}

std::string GreetingBytes(const std::string& key, const Greeting& greeting) {
  std::string bytes(reinterpret_cast<const char*>(&greeting.from), sizeof greeting.from);
  bytes.append(View(greeting.challenge));
  bytes += static_cast<char>(greeting.purpose);
  return bytes + Seal(key, "greeting", bytes);
}

std::optional<Greeting> ReadGreeting(const std::string& key, std::string_view bytes) {
  if (bytes.size() != kGreetingBytes) return std::nullopt;
  const auto body = Opened(key, "greeting", bytes);
  if (!body) return std::nullopt;
  Greeting greeting;
  std::memcpy(&greeting.from, body->data(), sizeof greeting.from);
  std::memcpy(greeting.challenge.data(), body->data() + sizeof greeting.from, greeting.challenge.size());
  greeting.purpose = body->back() == static_cast<char>(Purpose::kBurst) ? Purpose::kBurst : Purpose::kReach;
  return greeting;
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

}  // namespace dtrun::net
