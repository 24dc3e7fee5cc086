#include "core/protocol/dialer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <random>

#include "core/base/timer.h"
#include "core/protocol/attempt.h"
#include "core/protocol/connection.h"

namespace dtrun::protocol {
namespace {

// Problems within this time are reported together.
constexpr std::chrono::milliseconds kTellAfter{100};
constexpr char kNoAnswer[] = "no answer";
constexpr std::size_t kMostNamed = 4;  // addresses named per reason
constexpr std::size_t kMostTold = 64;  // lines of trouble in total

}  // namespace

class Dialer::Search : public std::enable_shared_from_this<Search> {
 public:
  Search(asio::io_context& loop, Dialer::Options options, Dialer::Handlers handlers)
      : loop_(loop),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        tls_(std::make_shared<Tls>(options_.key, options_.hello.job)),
        deadline_(loop),
        next_(loop),
        pause_timer_(loop),
        patience_(loop),
        tell_(loop),
        detour_timer_(loop),
        pause_(options_.first_pause),
        random_(std::random_device{}()) {}

  void Start() {
    After(deadline_, options_.deadline, [](Search& search) { search.GiveUp(); });
    After(patience_, options_.patience, [](Search& search) { search.LosePatience(); });
    if (options_.detour.open) AwaitDetour(options_.detour_after);
    asio::post(loop_, [self = shared_from_this()] { self->StartRound(); });
  }

  void Stop() {
    ended_ = true;
    handlers_ = {};
    lookups_.clear();
    queue_.clear();
    ready_.clear();
    for (const auto& attempt : std::exchange(flying_, {})) attempt->Drop();
    for (auto* timer : {&deadline_, &next_, &pause_timer_, &patience_, &tell_, &detour_timer_})
      timer->Cancel();
  }

  int tries() const { return tries_; }
  const std::string& last_error() const { return last_error_; }
  const std::string& trouble() const { return trouble_.told(); }

 private:
  void After(Timer& timer, Nanoseconds time, void (*then)(Search&)) {
    timer.After(time, [self = shared_from_this(), then] { then(*self); });
  }

  // Attempts of the previous round that are still in progress continue.
  void StartRound() {
    if (ended_) return;
    failed_ = resting_ = false;
    for (const std::string& name : options_.names) {
      if (lookups_.contains(name)) continue;
      lookups_[name] = nullptr;
      auto handle = options_.resolver(loop_, name, [weak = weak_from_this(), name](const Addresses& found) {
        const auto self = weak.lock();
        if (self != nullptr && !self->ended_) self->HandleLookup(name, found);
      });
      const auto pending = lookups_.find(name);
      if (pending != lookups_.end()) pending->second = std::move(handle);
    }
    Rest();
  }

  void HandleLookup(const std::string& name, const Addresses& found) {
    lookups_.erase(name);
    if (!found) {
      ++tries_;  // a lookup that succeeds is counted by its addresses
      trouble_.NoteName(name, found.error().text);
      Missed(found.error().text);
      return Rest();
    }
    for (const auto& address : *found) {
      const Tcp::endpoint endpoint(address, static_cast<std::uint16_t>(options_.port));
      const bool known =
          std::ranges::count(queue_, endpoint) != 0 || std::ranges::any_of(flying_, [&](const auto& attempt) {
            return attempt->target() == TextOf(endpoint);
          });
      if (!known) queue_.push_back(endpoint);
    }
    if (!staggering_) ConnectNext();
  }

  // The next attempt starts after the stagger time, or when this one has failed.
  void ConnectNext() {
    staggering_ = false;
    if (queue_.empty()) return Rest();
    const Tcp::endpoint endpoint = queue_.front();
    queue_.pop_front();
    const auto attempt = Add(TextOf(endpoint));
    newest_ = attempt.get();
    staggering_ = true;
    const auto others = static_cast<std::int64_t>(queue_.size() + flying_.size());
    After(next_, std::min(options_.stagger, options_.spread / others),
          [](Search& search) { search.ConnectNext(); });
    attempt->Connect(endpoint, options_.try_limit);
  }

  std::shared_ptr<Attempt> Add(const std::string& target) {
    ++tries_;
    // The dialer drops its attempts before it is destroyed.
    auto attempt = std::make_shared<Attempt>(
        loop_, tls_, target, options_.hello.job, options_.key_origin,
        Attempt::Events{
            [this](Attempt& one) {
              ready_.push_back(one.shared_from_this());
              SayHelloNext();
            },
            [this](Attempt& one, Welcome welcome) { Join(one.TakeConnection(), std::move(welcome)); },
            [this, keep = weak_from_this()](Attempt& one, const Error& why) {
              if (const auto self = keep.lock()) HandleFailure(one, why);
            }});
    flying_.push_back(attempt);
    return attempt;
  }

  // One hello at a time, or the root would see one host join twice.
  void SayHelloNext() {
    if (hello_ != nullptr || ready_.empty()) return;
    const std::shared_ptr<Attempt> attempt = ready_.front();
    ready_.pop_front();
    hello_ = attempt.get();
    attempt->SayHello(options_.hello);
  }

  void HandleFailure(Attempt& one, const Error& why) {
    const auto keep = one.shared_from_this();
    std::erase(flying_, keep);
    std::erase(ready_, keep);
    if (why.code == DTRUN_FAILED_PRECONDITION) return Fail(why);
    trouble_.Note(one.target(), why.text.starts_with(kNoAnswer) ? kNoAnswer : why.text);
    Missed(fmt::format("{}: {}", one.target(), why.text));
    if (std::exchange(hello_, hello_ == &one ? nullptr : hello_) == &one) SayHelloNext();
    if (one.target() == options_.detour.name) {
      detoured_ = false;
      AwaitDetour(options_.detour_after);
    }
    if (newest_ == &one && staggering_) {
      next_.Cancel();
      return ConnectNext();
    }
    Rest();
  }

  void Missed(std::string why) {
    failed_ = true;
    last_error_ = std::move(why);
    Tell();
  }

  // Ends the round once all its attempts have started. Failed ones are retried after a pause, even if others
  // are still waiting.
  void Rest() {
    if (ended_ || resting_ || staggering_ || !queue_.empty()) return;
    const bool idle = flying_.empty() && lookups_.empty();
    if (!failed_ && !idle) return;
    resting_ = true;
    if (idle) TakeDetour();
    // A random pause of at least half the value, so that hosts that start together do not retry together.
    std::uniform_real_distribution<double> part(0.5, 1.0);
    After(pause_timer_, std::chrono::duration_cast<Nanoseconds>(pause_ * part(random_)),
          [](Search& search) { search.StartRound(); });
    pause_ = std::min(2 * pause_, options_.max_pause);
  }

  void AwaitDetour(Nanoseconds time) {
    After(detour_timer_, time, [](Search& search) {
      // A root that has accepted a connection may just be slow.
      const bool hope = std::ranges::any_of(search.flying_, [](const auto& one) { return one->connected(); });
      if (hope) return search.AwaitDetour(search.options_.detour_after);
      search.TakeDetour();
    });
  }

  void TakeDetour() {
    if (!options_.detour.open || detoured_) return;
    UniqueFd stream = options_.detour.open();
    if (!stream) return;
    detoured_ = true;
    detour_timer_.Cancel();
    patient_ = false;
    TellNow();
    const auto attempt = Add(options_.detour.name);
    asio::post(loop_,
               [self = shared_from_this(), attempt, fd = std::make_shared<UniqueFd>(std::move(stream))] {
                 if (!self->ended_) attempt->Take(std::move(*fd), self->options_.deadline);
               });
  }

  // Reports what has not answered yet as trouble.
  void LosePatience() {
    patient_ = false;
    for (const auto& attempt : flying_) {
      if (attempt->target() != options_.detour.name) trouble_.Note(attempt->target(), kNoAnswer);
    }
    for (const auto& lookup : lookups_) {
      trouble_.NoteName(lookup.first, fmt::format("the lookup of '{}' has not finished", lookup.first));
    }
    Tell();
  }

  // Does not report a root that starts a moment later.
  void Tell() {
    if (patient_ || std::exchange(telling_, true)) return;
    After(tell_, kTellAfter, [](Search& search) {
      search.telling_ = false;
      search.TellNow();
    });
  }

  void TellNow() {
    const auto tell = handlers_.on_trouble;
    if (trouble_.TakeNews() && tell) tell(trouble_.told());
  }

  void Join(std::shared_ptr<Connection> connection, Welcome welcome) {
    auto handlers = std::move(handlers_);
    trouble_.TakeNews();
    Stop();
    auto channel = MakeChannel(std::move(connection), options_.hello.loss_limit, welcome.loss_limit, {});
    handlers.on_joined(std::move(welcome), std::move(channel));
  }

  void GiveUp() {
    if (last_error_.empty()) {
      LosePatience();
      last_error_ = trouble_.Line();
    }
    Fail({DTRUN_TIMEOUT,
          fmt::format("could not join the root at {} port {} within {}, {} tries; last error: {}; check that "
                      "the root runs, and that this host reaches it under that name and port",
                      fmt::join(options_.names, ", "), options_.port, FormatDuration(options_.deadline),
                      tries_, last_error_)});
  }

  void Fail(const Error& error) {
    auto handlers = std::move(handlers_);
    last_error_ = error.text;
    Stop();
    handlers.on_failed(error);
  }

  asio::io_context& loop_;
  const Dialer::Options options_;
  Dialer::Handlers handlers_;
  std::shared_ptr<Tls> tls_;
  Timer deadline_, next_, pause_timer_, patience_, tell_, detour_timer_;
  Nanoseconds pause_;
  std::mt19937 random_;

  std::map<std::string, std::shared_ptr<void>> lookups_;  // in progress, by name
  std::deque<Tcp::endpoint> queue_;                       // resolved but not yet tried in this round
  std::vector<std::shared_ptr<Attempt>> flying_;
  std::deque<std::shared_ptr<Attempt>> ready_;  // waiting to send a hello
  const Attempt* hello_ = nullptr;
  const Attempt* newest_ = nullptr;
  Trouble trouble_;
  std::string last_error_;
  int tries_ = 0;
  bool staggering_ = false;  // the next attempt waits for its time
  bool failed_ = false;      // something failed in this round
  bool resting_ = false;
  bool patient_ = true;
  bool telling_ = false;
  bool detoured_ = false;
  bool ended_ = false;
};

Dialer::~Dialer() { search_->Stop(); }
int Dialer::tries() const { return search_->tries(); }
const std::string& Dialer::last_error() const { return search_->last_error(); }
const std::string& Dialer::trouble() const { return search_->trouble(); }

std::unique_ptr<Dialer> Dialer::Start(asio::io_context& loop, Options options, Handlers handlers) {
  auto search = std::make_shared<Search>(loop, std::move(options), std::move(handlers));
  search->Start();
  return std::unique_ptr<Dialer>(new Dialer(std::move(search)));
}

void Trouble::Keep(std::vector<std::pair<std::string, std::string>>* where, const std::string& what,
                   const std::string& why) {
  const auto known = std::ranges::find_if(*where, [&](const auto& entry) { return entry.first == what; });
  if (known == where->end()) {
    where->emplace_back(what, why);
  } else {
    known->second = why;
  }
}

void Trouble::Note(const std::string& address, const std::string& why) { Keep(&addresses_, address, why); }
void Trouble::NoteName(const std::string& name, const std::string& sentence) {
  Keep(&names_, name, sentence);
}

std::string Trouble::Line() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const auto& [address, why] : addresses_) {
    auto group = std::ranges::find(by_reason, why, &decltype(by_reason)::value_type::first);
    if (group == by_reason.end()) group = by_reason.insert(by_reason.end(), {why, {}});
    group->second.push_back(address);
  }
  std::string line;
  for (const auto& [why, addresses] : by_reason) {
    line += line.empty() ? "cannot reach " : "; ";
    for (std::size_t i = 0; i < addresses.size() && i < kMostNamed; ++i) {
      line += (i == 0 ? "" : ", ") + addresses[i];
    }
    if (addresses.size() > kMostNamed) line += fmt::format(" and {} more", addresses.size() - kMostNamed);
    line += ": " + why;
  }
  for (const auto& entry : names_) line += (line.empty() ? "" : "; ") + entry.second;
  return line;
}

bool Trouble::TakeNews() {
  std::string line = Line();
  if (line.empty() || told_.size() >= kMostTold || !told_.insert(line).second) return false;
  latest_ = std::move(line);
  return true;
}

}  // namespace dtrun::protocol
