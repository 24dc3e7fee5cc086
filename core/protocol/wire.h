// A TCP connection with TLS over it and frames in that: what channels and hellos are made
// of. Shared by its pending operations; on the loop's thread.
#pragma once

#include <array>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/asio.h"
#include "core/base/encoding.h"
#include "core/base/fd.h"
#include "core/protocol/channel.h"
#include "core/protocol/hello.h"
#include "core/protocol/tls.h"

namespace dtrun::protocol {

struct Wire : std::enable_shared_from_this<Wire> {
  Wire(Tcp::socket socket, std::shared_ptr<Tls> keys);

  // Every handler may be called after Close, with an error.
  void Handshake(asio::ssl::stream_base::handshake_type side, std::function<void(error_code)> done);
  // The next frame, however many reads it takes; the bytes are valid during the call.
  void ReadFrame(std::function<void(Result<std::string_view>)> done);
  void Write(std::string bytes, std::function<void(error_code)> done);
  // Ends what we send; the peer reads the rest and then an end.
  void EndSending();
  void Close();
  // Once the socket is connected: keeps the peer's address, and sends small frames at once.
  void Name();
  // In place of a connected socket: a stream of another kind, which is open on both sides.
  void Adopt(UniqueFd connected, const std::string& name);

  Tcp::socket& socket() { return stream.next_layer(); }

  std::shared_ptr<Tls> tls;
  asio::ssl::stream<Tcp::socket> stream;
  std::array<char, 16384> chunk;  // one record of TLS
  FrameReader frames{kMaxHelloBytes};
  std::string peer;
};

// The channel over a wire whose hello is done. `first` goes out before everything else.
std::unique_ptr<Channel> MakeChannel(std::shared_ptr<Wire> wire, Nanoseconds our_limit,
                                     Nanoseconds peer_limit, const std::string& first);

}  // namespace dtrun::protocol
