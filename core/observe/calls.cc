#include <fmt/format.h>

#include "core/base/error_id.h"
#include "core/base/text.h"
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

std::optional<fact::Reported> EndedInPlugin(const protocol::Ended& ended) {
  const std::string members = Printable(ended.under_way.members);
  if (ended.under_way.fault)
    return fact::Reported{{ended.rank},
                          {-1,
                           members + ": a fault there ended its process",
                           {},
                           ErrorId::kPluginFault,
                           {{"plugin", members.substr(0, members.find(','))}}}};
  if (members.empty()) return std::nullopt;
  return fact::Reported{
      {ended.rank},
      {-1, fmt::format("its process called _exit during a call: {}; if the program itself does not call "
                       "_exit, report it to the plugin's author",
                       members)}};
}

}  // namespace dtrun::observe
