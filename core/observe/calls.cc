#include "core/observe/observer.h"

namespace dtrun::observe {
namespace {

class Calls final : public Observer {
 public:
  Finding On(const View& view, std::size_t /*host*/, const protocol::Event& event) override {
    Finding finding;
    if (const auto* const called = std::get_if<protocol::Called>(&event)) {
      finding.tell = *called;
      finding.tell_sender = false;
    }
    const auto* const differed = std::get_if<protocol::Differed>(&event);
    // Several hosts may report it.
    if (differed == nullptr || !view.running || !view.facts.calls_differ.empty()) return finding;
    finding.facts.push_back(fact::Noted{fact::Noted::What::kCallsDiffer, differed->difference.text});
    finding.line = "dtrun: " + differed->difference.text;
    finding.tell = *differed;
    return finding;
  }
};

}  // namespace

std::unique_ptr<Observer> WatchCalls() { return std::make_unique<Calls>(); }

}  // namespace dtrun::observe
