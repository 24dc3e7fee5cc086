// TLS 1.3 with the job's key instead of certificates: an external pre-shared key with (EC)DHE, RFC 8446. Both
// sides prove that they know the key, and earlier traffic stays secret even if the key leaks later.
//
// One per listener or dialer, shared by its connections; on the loop's thread.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/asio.h"
#include "core/protocol/key.h"

namespace dtrun::protocol {

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
