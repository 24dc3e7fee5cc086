#include "core/protocol/attempt.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/ssl/stream_base.hpp>

#include "core/protocol/connection.h"

namespace dtrun::protocol {

Attempt::Attempt(asio::io_context& loop, std::shared_ptr<Tls> tls, std::string target, std::string job,
                 std::string key_origin, Events events)
    : target_(std::move(target)),
      job_(std::move(job)),
      key_origin_(std::move(key_origin)),
      events_(std::move(events)),
      connection_(std::make_shared<Connection>(Tcp::socket(loop), std::move(tls))),
      timer_(loop) {}

void Attempt::Connect(const Tcp::endpoint& endpoint, Nanoseconds limit) {
  limit_ = limit;
  Limit();
  error_code unusable;  // address family that this host lacks
  connection_->socket().open(endpoint.protocol(), unusable);
  if (unusable) {
    return asio::post(connection_->stream.get_executor(), [self = shared_from_this(), unusable] {
      if (!self->over_) self->Miss(unusable.message());
    });
  }
  CloseOnExec(connection_->socket());
  connection_->socket().async_connect(endpoint, [self = shared_from_this()](const error_code& error) {
    if (self->over_) return;
    if (error) return self->Miss(error.message());
    self->connected_ = true;
    self->connection_->Name();
    self->Handshake();
  });
}

void Attempt::Take(UniqueFd stream, Nanoseconds limit) {
  limit_ = limit;
  Limit();
  connection_->Adopt(std::move(stream), target_);
  connected_ = true;
  Handshake();
}

void Attempt::Limit() {
  timer_.After(limit_, [self = shared_from_this()] {
    self->Miss(fmt::format("no answer within {}", FormatDuration(self->limit_)));
  });
}

void Attempt::Handshake() {
  connection_->Handshake(asio::ssl::stream_base::client,
                         [self = shared_from_this()](const error_code& error) {
                           if (!self->over_) self->HandleHandshake(error);
                         });
}

void Attempt::HandleHandshake(const error_code& error) {
  if (!error && ProvedKey(connection_->stream.native_handle())) {
    timer_.Cancel();
    return events_.ready(*this);
  }
  switch (error ? FailureOf(error) : HandshakeFailure::kNoKey) {
    case HandshakeFailure::kWrongKey:
      return Miss(fmt::format("the root at {} does not know the key of job '{}': another job's root uses "
                              "this address, or this host was given another key{}",
                              target_, job_, HowToShare(key_origin_)),
                  DTRUN_FAILED_PRECONDITION);
    case HandshakeFailure::kGone:
      return Miss(fmt::format("it accepts connections and drops them ({})", error.message()));
    case HandshakeFailure::kNotTls:
    case HandshakeFailure::kNoKey: return Miss("what listens there is not the root of a dtrun job");
    case HandshakeFailure::kOther: break;
  }
  Miss(fmt::format("the TLS handshake failed ({})", error.message()));
}

void Attempt::SayHello(const Hello& hello) {
  Limit();
  connection_->Write(Encode(hello), [self = shared_from_this()](const error_code& error) {
    if (error && !self->over_) self->Miss(error.message());
  });
  connection_->ReadFrame([self = shared_from_this()](const Result<std::string_view>& frame) {
    if (self->over_) return;
    if (!frame) return self->Miss(frame.error().text);
    self->HandleAnswer(*frame);
  });
}

void Attempt::HandleAnswer(std::string_view frame) {
  Result<Welcome> welcome = DecodeAnswer(frame);
  if (!welcome && welcome.error().code == DTRUN_FAILED_PRECONDITION) {
    return Miss(fmt::format("the root at {} refused this host: {}", target_, welcome.error().text),
                DTRUN_FAILED_PRECONDITION);
  }
  if (!welcome) return Miss(welcome.error().text);
  over_ = true;
  timer_.Cancel();
  const auto events = std::exchange(events_, {});
  events.welcomed(*this, *std::move(welcome));
}

void Attempt::Drop() {
  over_ = true;
  events_ = {};
  timer_.Cancel();
  if (connection_) connection_->Close();
}

void Attempt::Miss(std::string why, dtrun_status code) {
  const auto self = shared_from_this();
  const auto events = std::exchange(events_, {});
  Drop();
  events.failed(*this, {code, std::move(why)});
}

}  // namespace dtrun::protocol
