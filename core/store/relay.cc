#include "core/store/relay.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/write.hpp>
#include <deque>

#include "core/store/protocol.h"

namespace dtrun::store {

// One socket, kept alive by its pending operations.
class Relay::Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `relay`: null once the relay has released it.
  Stream(Relay* relay, std::uint32_t number, Socket socket)
      : relay_(relay), number_(number), socket_(std::move(socket)) {}

  void Read() {
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](const error_code& error, std::size_t size) {
                              if (self->relay_ == nullptr) return;
                              if (error) return self->End();
                              self->relay_->wire_.data(self->number_, {self->chunk_.data(), size});
                              self->Read();
                            });
  }

  void Write(std::string_view bytes) {
    // As in the store: a client that sends requests without reading replies is dropped.
    waiting_bytes_ += bytes.size();
    if (waiting_bytes_ > kMaxQueuedBytes) return relay_ == nullptr ? Drop() : End();
    waiting_.emplace_back(bytes);
    if (waiting_.size() == 1) WriteNext();
  }

  // Closes after pending data is written.
  void LetGo() {
    relay_ = nullptr;
    if (waiting_.empty()) Drop();
  }

  void Drop() {
    relay_ = nullptr;
    error_code ignored;  // a failed close still closes
    socket_.close(ignored);
  }

 private:
  void WriteNext() {
    asio::async_write(socket_, asio::buffer(waiting_.front()),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (error) return self->relay_ == nullptr ? self->Drop() : self->End();
                        self->waiting_bytes_ -= self->waiting_.front().size();
                        self->waiting_.pop_front();
                        if (!self->waiting_.empty()) return self->WriteNext();
                        if (self->relay_ == nullptr) self->Drop();
                      });
  }

  void End() {
    Relay* const relay = relay_;
    if (relay == nullptr) return;
    Drop();
    relay->streams_.erase(number_);
    relay->wire_.closed(number_);
  }

  Relay* relay_;
  const std::uint32_t number_;
  Socket socket_;
  std::array<char, 16384> chunk_;
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
};

Relay::Relay(asio::io_context& loop, Wire wire) : loop_(loop), wire_(std::move(wire)) {}

Relay::~Relay() {
  for (auto& [number, stream] : streams_) stream->Drop();
}

void Relay::Enter(Socket client) {
  const std::uint32_t number = ++last_;
  auto stream = std::make_shared<Stream>(this, number, std::move(client));
  streams_[number] = stream;
  wire_.opened(number);
  stream->Read();
}

Result<Socket> Relay::Open(std::uint32_t client) {
  Socket ours(loop_), theirs(loop_);
  error_code error;
  asio::local::connect_pair(ours, theirs, error);
  if (error) return Error::System("connect a rank of another host to the store", error.value());
  auto stream = std::make_shared<Stream>(this, client, std::move(ours));
  streams_[client] = stream;
  stream->Read();
  return theirs;
}

void Relay::Data(std::uint32_t client, std::string_view bytes) {
  if (const auto found = streams_.find(client); found != streams_.end()) found->second->Write(bytes);
}

void Relay::Close(std::uint32_t client) {
  const auto found = streams_.find(client);
  if (found == streams_.end()) return;
  found->second->LetGo();
  streams_.erase(found);
}

}  // namespace dtrun::store
