#include "core/protocol/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <string.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "core/base/number.h"

namespace dtrun::protocol {
namespace {

// An identity is never empty, and has at most 128 bytes in every OpenSSL version.
constexpr std::string_view kPrefix = "dtrun job ";
constexpr std::size_t kShownJobBytes = 64;
constexpr const char kSuite[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kSuiteId[] = {0x13, 0x01};
// OpenSSL requires a session id context from a verifying side; it is the same at both ends.
constexpr unsigned char kUse[] = {'d', 't', 'r', 'u', 'n'};

// Index of our data in OpenSSL's objects.
int ContextIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}
void FreeText(void*, void* text, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::string*>(text);
}
int ClaimIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, FreeText);
  return index;
}

const Tls& TlsOf(SSL* connection) {
  return *static_cast<const Tls*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), ContextIndex()));
}

// The key as OpenSSL's external TLS 1.3 pre-shared key; null if out of memory.
SSL_SESSION* SessionOf(SSL* connection, const Key& key) {
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(connection, kSuiteId);
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, key.data(), Key::kBytes) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set1_id_context(session, kUse, sizeof kUse) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int OfferKey(SSL* connection, const EVP_MD* hash, const unsigned char** identity, std::size_t* size,
             SSL_SESSION** session) {
  *session = nullptr;
  // OpenSSL calls again after the root chose a hash; our key works with only one hash.
  if (hash != nullptr && EVP_MD_size(hash) != static_cast<int>(Key::kBytes)) return 1;
  const Tls& tls = TlsOf(connection);
  *session = SessionOf(connection, tls.key());
  *identity = reinterpret_cast<const unsigned char*>(tls.identity().data());
  *size = tls.identity().size();
  return *session != nullptr ? 1 : 0;
}

int FindKey(SSL* connection, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  auto* claim = new (std::nothrow) std::string(reinterpret_cast<const char*>(identity), size);
  delete static_cast<std::string*>(SSL_get_ex_data(connection, ClaimIndex()));
  SSL_set_ex_data(connection, ClaimIndex(), claim);
  *session = SessionOf(connection, TlsOf(connection).key());
  return *session != nullptr ? 1 : 0;
}

// These settings cannot fail on a working OpenSSL; continuing without one would be unsafe.
void Must(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "dtrun: OpenSSL cannot %s\n", what);
  std::abort();
}

}  // namespace

Result<Key> Key::FromHex(std::string_view digits) {
  const auto refuse = [](const std::string& problem) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "the key of the job {}; it is {} hexadecimal digits, the same on every host", problem,
                     2 * kBytes);
  };
  if (digits.size() != 2 * kBytes) return refuse(fmt::format("has {} characters", digits.size()));
  Key key;
  for (std::size_t i = 0; i < kBytes; ++i) {
    const auto byte = NumberOf<unsigned char>(digits.substr(2 * i, 2), 16);
    if (!byte) {
      return refuse(fmt::format("has something else than a hexadecimal digit at character {} or {}",
                                2 * i + 1, 2 * i + 2));
    }
    key.bytes_[i] = *byte;
  }
  return key;
}

Key Key::FromText(std::string_view text) {
  Key key;
  static_assert(kBytes == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.bytes_.data());
  return key;
}

Key Key::For(std::string_view job) const {
  Key key;
  unsigned size = 0;
  const bool done =
      HMAC(EVP_sha256(), bytes_.data(), kBytes, reinterpret_cast<const unsigned char*>(job.data()),
           job.size(), key.bytes_.data(), &size) != nullptr;
  if (!done || size != kBytes) std::abort();  // fails only without memory
  return key;
}

std::string HowToShare(std::string_view key_origin) {
  if (key_origin.empty()) return {};
  return fmt::format("; ours comes from {}: give every host the same", key_origin);
}

Key::~Key() { ::explicit_bzero(bytes_.data(), bytes_.size()); }

Tls::Tls(const Key& key, const std::string& job)
    : key_(key), identity_(std::string(kPrefix) + ShownJob(job)), context_(asio::ssl::context::tlsv13) {
  SSL_CTX* context = context_.native_handle();
  Must(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "require TLS 1.3");
  Must(SSL_CTX_set_ciphersuites(context, kSuite) == 1, "use TLS_AES_128_GCM_SHA256");
  Must(SSL_CTX_set_num_tickets(context, 0) == 1, "switch session tickets off");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // No certificate is trusted, so a server that presents one instead of the key fails.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  Must(SSL_CTX_set_session_id_context(context, kUse, sizeof kUse) == 1, "name the use of its keys");
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  Must(SSL_CTX_set_ex_data(context, ContextIndex(), this) == 1, "keep the key");
  SSL_CTX_set_psk_use_session_callback(context, OfferKey);
  SSL_CTX_set_psk_find_session_callback(context, FindKey);
}

bool ProvedKey(SSL* connection) {
  return SSL_is_init_finished(connection) == 1 && SSL_session_reused(connection) == 1;
}

std::string ClaimedJob(SSL* connection) {
  const auto* claim = static_cast<const std::string*>(SSL_get_ex_data(connection, ClaimIndex()));
  if (claim == nullptr) return {};
  return ShownJob(claim->starts_with(kPrefix) ? claim->substr(kPrefix.size()) : *claim);
}

std::string ShownJob(std::string_view job) {
  std::string shown(job.substr(0, kShownJobBytes));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

HandshakeFailure FailureOf(const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return HandshakeFailure::kGone;
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_LENGTH_TOO_LONG: return HandshakeFailure::kNotTls;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return HandshakeFailure::kNoKey;
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR: return HandshakeFailure::kWrongKey;
    default: return HandshakeFailure::kOther;
  }
}

}  // namespace dtrun::protocol
