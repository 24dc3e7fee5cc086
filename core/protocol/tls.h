// TLS 1.3 with the key of the job instead of certificates: RFC 8446, external pre-shared key
// with (EC)DHE, so both sides prove that they know the key and what was sent stays secret
// even when the key leaks later.
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
  // `job` goes over the wire in clear as the identity of the key. It helps a root to say whose
  // agent it refuses; only the key counts.
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

// True when the handshake was made with the key. Always to be asked before trusting a peer.
bool ProvedKey(SSL* connection);

// The job that a client claimed in its handshake, as ShownJob; empty when it claimed none.
std::string ClaimedJob(SSL* connection);
// Cut to the length that goes over the wire, and printable.
std::string ShownJob(std::string_view job);

// What a failed handshake tells. `kOther` and `kGone` may pass, the rest will not.
enum class HandshakeFailure {
  kGone,      // the peer left, or the network broke
  kNotTls,    // it speaks something else
  kNoKey,     // TLS, but without any pre-shared key
  kWrongKey,  // with another job's key
  kOther,
};
HandshakeFailure FailureOf(const error_code& error);

}  // namespace dtrun::protocol
