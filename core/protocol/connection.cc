#include "core/protocol/connection.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace dtrun::protocol {

Connection::Connection(Tcp::socket tcp, std::shared_ptr<Tls> keys)
    : tls(std::move(keys)), stream(std::move(tcp), tls->context()) {}

void Connection::Name() {
  error_code unknown;  // the peer has left; the next operation reports it
  peer = TextOf(socket().remote_endpoint(unknown));
  socket().set_option(Tcp::no_delay(true), unknown);
}

void Connection::Adopt(UniqueFd connected, const std::string& name) {
  peer = name;
  error_code unusable;                                    // the first operation reports it
  socket().assign(Tcp::v4(), connected.get(), unusable);  // Asio does not check the stream's family
  if (!unusable) connected.Release();
}

void Connection::Handshake(asio::ssl::stream_base::handshake_type side,
                           std::function<void(error_code)> done) {
  stream.async_handshake(
      side, [self = shared_from_this(), done = std::move(done)](const error_code& error) { done(error); });
}

void Connection::ReadFrame(std::function<void(Result<std::string_view>)> done) {
  Result<std::optional<std::string_view>> frame = frames.Next();
  if (!frame) return done(std::move(frame).error());
  if (frame->has_value()) return done(**frame);
  stream.async_read_some(asio::buffer(chunk), [self = shared_from_this(), done = std::move(done)](
                                                  const error_code& error, std::size_t size) mutable {
    if (error) return done(Error{DTRUN_REMOTE_FAILURE, error.message()});
    self->frames.Append({self->chunk.data(), size});
    self->ReadFrame(std::move(done));
  });
}

void Connection::Write(std::string bytes, std::function<void(error_code)> done) {
  auto kept = std::make_shared<std::string>(std::move(bytes));
  asio::async_write(stream, asio::buffer(*kept),
                    [self = shared_from_this(), kept, done = std::move(done)](const error_code& error,
                                                                              std::size_t) { done(error); });
}

void Connection::EndSending() {
  error_code gone;  // nothing to end
  socket().shutdown(Tcp::socket::shutdown_send, gone);
}

void Connection::Close() {
  error_code ignored;  // a failed close still closes
  socket().close(ignored);
}

std::string TextOf(const Tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (address.is_v4()) return fmt::format("{}:{}", address.to_string(), endpoint.port());
  const asio::ip::address_v6 v6 = address.to_v6();
  if (!v6.is_v4_mapped()) return fmt::format("[{}]:{}", v6.to_string(), endpoint.port());
  const auto v4 = asio::ip::make_address_v4(asio::ip::v4_mapped, v6);
  return fmt::format("{}:{}", v4.to_string(), endpoint.port());
}

void CloseOnExec(Tcp::socket& socket) { ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC); }

}  // namespace dtrun::protocol
