#include "core/control/dialer.h"

#include <fmt/format.h>

#include <boost/asio/ssl/stream_base.hpp>
#include <chrono>
#include <deque>
#include <random>

#include "core/control/wire.h"

namespace dtrun::control {
namespace {

class Search : public std::enable_shared_from_this<Search> {
 public:
  Search(asio::io_context& loop, Dialer::Options options, Dialer::Handlers handlers)
      : loop_(loop),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        tls_(std::make_shared<Tls>(options_.key, options_.hello.job)),
        deadline_(loop),
        step_limit_(loop),
        pause_timer_(loop),
        pause_(options_.first_pause),
        random_(std::random_device{}()) {}

  void Start() {
    deadline_.expires_after(options_.deadline);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && !self->ended_) self->GiveUp();
    });
    asio::post(loop_, [self = shared_from_this()] { self->NextRound(); });
  }

  void Stop() {
    ended_ = true;
    handlers_ = {};
    Settle();
    deadline_.cancel();
    pause_timer_.cancel();
  }

  int tries() const { return tries_; }
  const std::string& last_error() const { return last_error_; }

 private:
  // A step that is over: its timer, lookup and connection mean nothing any more.
  void Settle() {
    ++step_;
    step_limit_.cancel();
    lookup_.reset();
    if (wire_) wire_->Close();
    wire_.reset();
  }

  // Starts a step: what it says it is doing, and how long it may.
  void Begin(std::string doing) {
    doing_ = std::move(doing);
    step_limit_.expires_after(options_.try_limit);
    step_limit_.async_wait([self = shared_from_this(), step = step_](const error_code& error) {
      if (error || self->step_ != step) return;
      self->Missed(
          fmt::format("{}: no answer within {}", self->doing_, FormatDuration(self->options_.try_limit)));
    });
  }

  void NextRound() {
    if (ended_) return;
    names_.assign(options_.names.begin(), options_.names.end());
    NextName();
  }

  void NextName() {
    if (names_.empty()) return Pause();
    const std::string name = std::move(names_.front());
    names_.pop_front();
    Begin(fmt::format("looking '{}' up", name));
    lookup_ = options_.resolver(loop_, name, [self = shared_from_this(), step = step_](Addresses found) {
      if (self->ended_ || self->step_ != step) return;
      if (!found) return self->Missed(found.error().text);
      self->Settle();
      self->addresses_.assign(found->begin(), found->end());
      self->NextAddress();
    });
  }

  void NextAddress() {
    if (addresses_.empty()) return NextName();
    const Tcp::endpoint endpoint(addresses_.front(), static_cast<std::uint16_t>(options_.port));
    addresses_.pop_front();
    target_ = TextOf(endpoint);
    ++tries_;
    Begin(fmt::format("connecting to {}", target_));
    wire_ = std::make_shared<Wire>(Tcp::socket(loop_), tls_);
    error_code unusable;  // a family that this host lacks
    wire_->socket().open(endpoint.protocol(), unusable);
    if (unusable) return Missed(fmt::format("{}: {}", target_, unusable.message()));
    CloseOnExec(wire_->socket());
    wire_->socket().async_connect(
        endpoint, Guarded([](Search& search, const error_code& error) {
          if (error) return search.Missed(fmt::format("{}: {}", search.target_, error.message()));
          search.Handshake();
        }));
  }

  void Handshake() {
    wire_->Name();
    wire_->Handshake(asio::ssl::stream_base::client,
                     Guarded([](Search& search, const error_code& error) { search.HandleHandshake(error); }));
  }

  void HandleHandshake(const error_code& error) {
    if (!error && ProvedKey(wire_->stream.native_handle())) return Greet();
    switch (error ? FailureOf(error) : HandshakeFailure::kNoKey) {
      case HandshakeFailure::kWrongKey:
        return Refused(
            fmt::format("the root at {} does not know the key of job '{}': another job's root uses "
                        "this address, or this host was given another key",
                        target_, options_.hello.job));
      case HandshakeFailure::kGone:
        return Missed(
            fmt::format("{}: it accepts connections and drops them ({})", target_, error.message()));
      case HandshakeFailure::kNotTls:
      case HandshakeFailure::kNoKey:
        return Missed(fmt::format("{}: what listens there is not the root of a dtrun job", target_));
      case HandshakeFailure::kOther: break;
    }
    Missed(fmt::format("{}: no handshake came about ({})", target_, error.message()));
  }

  void Greet() {
    wire_->Write(Encode(options_.hello), Guarded([](Search& search, const error_code& error) {
                   if (error) search.Missed(fmt::format("{}: {}", search.target_, error.message()));
                 }));
    wire_->ReadFrame([self = shared_from_this(), step = step_](const Result<std::string_view>& frame) {
      if (self->ended_ || self->step_ != step) return;
      if (!frame) return self->Missed(fmt::format("{}: {}", self->target_, frame.error().text));
      self->HandleAnswer(*frame);
    });
  }

  void HandleAnswer(std::string_view frame) {
    Result<Welcome> welcome = DecodeAnswer(frame);
    if (!welcome && welcome.error().code == DTRUN_FAILED_PRECONDITION) {
      return Refused(fmt::format("the root at {} refused this host: {}", target_, welcome.error().text));
    }
    if (!welcome) return Missed(fmt::format("{}: {}", target_, welcome.error().text));
    auto wire = std::move(wire_);
    auto handlers = std::move(handlers_);
    Stop();
    auto channel = MakeChannel(std::move(wire), options_.hello.loss_limit, welcome->loss_limit, {});
    handlers.on_joined(*std::move(welcome), std::move(channel));
  }

  // This try failed; the next address, name or round may not.
  void Missed(std::string why) {
    last_error_ = std::move(why);
    if (!wire_) ++tries_;  // a lookup; one that works counts with its addresses
    Settle();
    NextAddress();
  }

  void Pause() {
    // Half of it for certain: hosts that start together shall not knock together.
    std::uniform_real_distribution<double> part(0.5, 1.0);
    pause_timer_.expires_after(std::chrono::duration_cast<Nanoseconds>(pause_ * part(random_)));
    pause_timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->NextRound();
    });
    pause_ = std::min(2 * pause_, options_.max_pause);
  }

  void Refused(std::string why) { Fail({DTRUN_FAILED_PRECONDITION, std::move(why)}); }

  void GiveUp() {
    std::string names;
    for (const std::string& name : options_.names) names += (names.empty() ? "" : ", ") + name;
    const std::string latest = last_error_.empty() ? doing_ + " has not ended" : last_error_;
    Fail({DTRUN_TIMEOUT,
          fmt::format("could not join the root at {} port {} within {}, {} tries; last error: {}; check that "
                      "the root runs, and that this host reaches it under that name and port",
                      names, options_.port, FormatDuration(options_.deadline), tries_, latest)});
  }

  void Fail(const Error& error) {
    auto handlers = std::move(handlers_);
    last_error_ = error.text;
    Stop();
    handlers.on_failed(error);
  }

  // Calls `next` unless the step that started it is over.
  std::function<void(const error_code&)> Guarded(std::function<void(Search&, const error_code&)> next) {
    return [self = shared_from_this(), step = step_, next = std::move(next)](const error_code& error) {
      if (!self->ended_ && self->step_ == step) next(*self, error);
    };
  }

  asio::io_context& loop_;
  const Dialer::Options options_;
  Dialer::Handlers handlers_;
  std::shared_ptr<Tls> tls_;
  asio::steady_timer deadline_;
  asio::steady_timer step_limit_;
  asio::steady_timer pause_timer_;
  Nanoseconds pause_;
  std::mt19937 random_;

  std::deque<std::string> names_;            // of this round, not yet looked up
  std::deque<asio::ip::address> addresses_;  // of this name, not yet tried
  std::shared_ptr<void> lookup_;
  std::shared_ptr<Wire> wire_;
  std::string target_;
  std::string doing_ = "the first try";
  std::string last_error_;
  std::uint64_t step_ = 0;
  int tries_ = 0;
  bool ended_ = false;
};

class PatientDialer final : public Dialer {
 public:
  explicit PatientDialer(std::shared_ptr<Search> search) : search_(std::move(search)) {}
  ~PatientDialer() override { search_->Stop(); }
  int tries() const override { return search_->tries(); }
  const std::string& last_error() const override { return search_->last_error(); }

 private:
  std::shared_ptr<Search> search_;
};

}  // namespace

std::unique_ptr<Dialer> Dialer::Start(asio::io_context& loop, Options options, Handlers handlers) {
  auto search = std::make_shared<Search>(loop, std::move(options), std::move(handlers));
  search->Start();
  return std::make_unique<PatientDialer>(std::move(search));
}

}  // namespace dtrun::control
