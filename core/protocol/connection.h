// A TCP connection with TLS and framing, the base of channels and hellos. Shared by its pending operations;
// on the loop's thread.
#pragma once

#include <array>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/asio.h"
#include "core/base/fd.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/tls.h"
#include "core/wire/coder.h"

namespace dtrun::protocol {

// "10.0.0.7:5555", "[fe80::1%2]:5555". An IPv4 address is printed as such even if an IPv6 socket accepted it.
std::string TextOf(const Tcp::endpoint& endpoint);

// Sets close-on-exec on an open socket: Asio does not, so ranks would inherit it.
void CloseOnExec(Tcp::socket& socket);

struct Connection : std::enable_shared_from_this<Connection> {
  Connection(Tcp::socket socket, std::shared_ptr<Tls> keys);

  // Handlers may be called after Close, with an error.
  void Handshake(asio::ssl::stream_base::handshake_type side, std::function<void(error_code)> done);
  // Reads the next frame, with as many reads as needed; the bytes are valid during the call.
  void ReadFrame(std::function<void(Result<std::string_view>)> done);
  void Write(std::string bytes, std::function<void(error_code)> done);
  // Shuts down sending; the peer reads the rest and then end of stream.
  void EndSending();
  void Close();
  // Call once the socket is connected: stores the peer's address and disables Nagle's algorithm.
  void Name();
  // Uses `connected`, a bidirectional stream of another kind, instead of a connected TCP socket.
  void Adopt(UniqueFd connected, const std::string& name);

  Tcp::socket& socket() { return stream.next_layer(); }

  std::shared_ptr<Tls> tls;
  asio::ssl::stream<Tcp::socket> stream;
  std::array<char, 16384> chunk;  // one TLS record
  wire::FrameReader frames{kMaxHelloBytes};
  std::string peer;
};

// Makes the channel on a connection after the hello. `first` is sent before everything else.
std::unique_ptr<Channel> MakeChannel(std::shared_ptr<Connection> connection, Nanoseconds our_limit,
                                     Nanoseconds peer_limit, const std::string& first);

}  // namespace dtrun::protocol
