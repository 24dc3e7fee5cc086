#include <fmt/format.h>

#include <utility>

#include "core/observe/observer.h"

namespace dtrun::observe {
namespace {

class Joining final : public Observer {
 public:
  explicit Joining(verdict::IsolationPolicy policy) : policy_(policy) {}

  Finding On(const View& view, std::size_t /*host*/, const protocol::Event& event) override {
    const auto* const looked = std::get_if<protocol::Looked>(&event);
    if (looked == nullptr) return {};
    if (frameworks_.empty()) frameworks_ = looked->frameworks;
    late_ = late_ || looked->late;
    alone_ = alone_ || looked->alone;
    Finding finding = alone_ && view.running && !looked->joined ? Judge(view) : Finding();
    if (looked->joined && !view.facts.met) finding.facts.push_back(fact::Noted{fact::Noted::What::kMet, ""});
    for (const verdict::Override& one : looked->overrides)
      finding.facts.push_back(fact::Overrode{{one.rank}, one.name, one.given, one.now});
    return finding;
  }
  Finding AllEnded(const View& view) override { return Judge(view); }

 private:
  // Call when the ranks have ended, or should have joined each other long ago.
  Finding Judge(const View& view) {
    if (view.facts.met || frameworks_.empty() || std::exchange(judged_, true)) return {};
    if (!alone_ && !late_) return {};  // seeing nothing proves nothing
    verdict::IsolatedRanks found = verdict::DescribeIsolatedRanks(frameworks_, view.plan.pmi, alone_);
    Finding finding;
    if (policy_ == verdict::IsolationPolicy::kWarn || !alone_) {
      finding.line = fmt::format("dtrun: warning: {}; next: {}", found.what, found.next);
    } else {
      finding.facts.push_back(fact::Isolated{std::move(found)});
      finding.then = Finding::Then::kStop;
    }
    return finding;
  }

  const verdict::IsolationPolicy policy_;
  std::vector<std::string> frameworks_;  // loaded by ranks
  bool alone_ = false;                   // a rank was seen training in a world of its own
  bool late_ = false;                    // a rank has not been seen joining for long
  bool judged_ = false;                  // once
};

}  // namespace

std::unique_ptr<Observer> WatchJoining(verdict::IsolationPolicy policy) {
  return std::make_unique<Joining>(policy);
}

}  // namespace dtrun::observe
