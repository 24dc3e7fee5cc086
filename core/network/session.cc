#include "core/network/session.h"

#include <fcntl.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace dtrun::network {

void Session::Limit(std::chrono::nanoseconds time) {
  deadline_.After(time, [this] { Close(); });
}

void Session::Close() {
  error_code ignored;  // nothing more to send to a peer that is given up
  socket.close(ignored);
}

void Session::Send(std::string bytes, Sent done) {
  out_ = std::move(bytes);
  asio::async_write(socket, asio::buffer(out_),
                    [self = shared_from_this(), done = std::move(done)](const error_code& error,
                                                                        std::size_t) { done(error); });
}

void Session::Receive(std::size_t size, Received done) {
  in_.resize(size);
  asio::async_read(socket, asio::buffer(in_),
                   [self = shared_from_this(), done = std::move(done)](const error_code& error, std::size_t) {
                     done(error, self->in_);
                   });
}

void CloseOnExec(int socket) { ::fcntl(socket, F_SETFD, FD_CLOEXEC); }

}  // namespace dtrun::network
