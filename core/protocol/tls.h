// TLS 1.3 with the job's key instead of certificates: an external pre-shared key with (EC)DHE, RFC 8446. Both
// sides prove that they know the key, and earlier traffic stays secret even if the key leaks later.
//
// One per listener or dialer, shared by its connections; on the loop's thread.
#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <string>
#include <string_view>

#include "core/base/asio.h"
#include "core/base/result.h"

namespace dtrun::protocol {

// The secret of a job: 32 bytes shared only by root and agents.
//
// It has no text form here, so that it cannot leak into a log by accident. Its memory is wiped on
// destruction. A value; any thread.
class Key {
 public:
  static constexpr std::size_t kBytes = 32;

  // 64 hex digits, as returned by store::NewJobKey. The error never quotes them.
  static Result<Key> FromHex(std::string_view digits);

  // Derived from a text that all hosts know, and only as secret as that text.
  static Key FromText(std::string_view text);

  // The key of one job, derived from one that serves several.
  Key For(std::string_view job) const;

  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  const unsigned char* data() const { return bytes_.data(); }

 private:
  Key() = default;
  std::array<unsigned char, kBytes> bytes_{};
};

// Ends a sentence about mismatched keys: where ours comes from, and what to do. Empty if the key is not from
// the user.
std::string HowToShare(std::string_view key_origin);

class Tls {
 public:
  // `job` is sent in clear as the identity of the key. It helps a root to report which job's agent it
  // refuses; only the key counts.
  Tls(const Key& key, const std::string& job);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  asio::ssl::context& context() { return context_; }
  const Key& key() const { return key_; }
  const std::string& identity() const { return identity_; }

 private:
  Key key_;
  std::string identity_;
  asio::ssl::context context_;
};

// Whether the handshake used the key. Always check this before trusting a peer.
bool ProvedKey(SSL* connection);

// The job that a client claimed in its handshake, in the form of ShownJob; empty if none.
std::string ClaimedJob(SSL* connection);
// Truncates to the length sent over the wire and makes it printable.
std::string ShownJob(std::string_view job);

// Why a handshake failed. `kOther` and `kGone` may be temporary, the others are not.
enum class HandshakeFailure {
  kGone,      // the peer left, or the network broke
  kNotTls,    // it speaks something else
  kNoKey,     // TLS, but without any pre-shared key
  kWrongKey,  // it has another job's key
  kOther,
};
HandshakeFailure FailureOf(const error_code& error);

}  // namespace dtrun::protocol
