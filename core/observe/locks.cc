#include <chrono>

#include "core/observe/observer.h"

namespace dtrun::observe {
namespace {

// Also which rendezvous variables a rank changed that is about to end.
class Locks final : public Observer {
 public:
  Finding On(const View& view, std::size_t /*host*/, const protocol::Event& event) override {
    constexpr std::string_view kTraceback = "Traceback (most recent call last)";
    Finding finding;
    const auto* const output = std::get_if<protocol::Output>(&event);
    if (output == nullptr) return finding;
    const verdict::RankFacts* const rank = view.facts.Find(output->rank);
    if (rank != nullptr && rank->lock) {
      const verdict::RankFacts* const holder = view.facts.Find(rank->lock->holder);
      if (holder == nullptr || !holder->ending) finding.facts.push_back(fact::MovedOn{{output->rank}});
    }
    if (output->stream != output::Stream::kErr || output->bytes.find(kTraceback) == std::string_view::npos)
      return finding;
    finding.facts.push_back(fact::PrintedError{{output->rank}});
    const auto now = std::chrono::steady_clock::now();
    if (!view.running || now < next_) return finding;
    next_ = now + apart_;
    apart_ *= 2;
    finding.then = Finding::Then::kLook;
    return finding;
  }

  Finding OnLook(const View& view, const std::vector<verdict::RankDoing>& ranks) override {
    fact::Places looked;
    Finding finding;
    for (const verdict::RankDoing& doing : ranks) {
      for (const verdict::Override& one : doing.overrides)
        finding.facts.push_back(fact::Overrode{{doing.rank}, one.name, one.given, one.now});
      const verdict::RankFacts* const rank = view.facts.Find(doing.rank);
      if (doing.waits_for >= 0 || (rank != nullptr && rank->lock))
        looked.ranks.push_back({{doing.rank}, doing});
    }
    if (!looked.ranks.empty()) finding.facts.push_back(std::move(looked));
    return finding;
  }

 private:
  std::chrono::nanoseconds apart_ = std::chrono::seconds(1);  // between looks, growing
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace

std::unique_ptr<Observer> WatchLocks() { return std::make_unique<Locks>(); }

}  // namespace dtrun::observe
