#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/observe/observer.h"

namespace dtrun::observe {
namespace {

// How ranks join each other with this framework.
std::string WayToJoin(const std::string& framework, pmi::Kind pmi) {
  if (framework == "PyTorch") {
    return "call torch.distributed.init_process_group (Lightning: Trainer(devices=N, strategy=\"ddp\"))";
  }
  if (framework == "TensorFlow")
    return "set job.dialects = [\"tf-config\"] and use a strategy for several workers";
  if (framework == "JAX") return "call jax.distributed.initialize";
  if (framework == "NCCL") return "call ncclCommInitRank with the size of the world";
  const pmi::Kind wanted = framework == "MPICH" ? pmi::Kind::kPmi1 : pmi::Kind::kPmix;
  if (pmi == wanted) return "call MPI_Init";
  return fmt::format("set job.pmi = \"{}\", or launcher.name = \"mpirun\"", pmi::KindName(wanted));
}

// `frameworks`: loaded by the ranks; not empty. `pmi`: what the job serves to MPI libraries. `seen`: a rank
// was seen working alone; otherwise no rank was seen joining.
verdict::IsolatedRanks DescribeIsolatedRanks(const std::vector<std::string>& frameworks, pmi::Kind pmi,
                                             bool seen) {
  std::vector<std::string> ways;
  for (const std::string& framework : frameworks) ways.push_back(WayToJoin(framework, pmi));
  const std::string loaded = fmt::format("{}", fmt::join(frameworks, " and "));
  return {seen
              ? fmt::format(
                    "the ranks have not joined each other: each has {} loaded and works alone (world size 1)",
                    loaded)
              : fmt::format("the ranks were not seen to join each other: each has {} loaded", loaded),
          fmt::format("{}; job.isolated_ranks = \"allow\" if this is intended", fmt::join(ways, ", or "))};
}

class Joining final : public Observer {
 public:
  explicit Joining(IsolationPolicy policy) : policy_(policy) {}

  Finding On(const View& view, std::size_t /*host*/, const protocol::Event& event) override {
    const auto* const looked = std::get_if<protocol::RendezvousSeen>(&event);
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
    verdict::IsolatedRanks found = DescribeIsolatedRanks(frameworks_, view.plan.pmi, alone_);
    Finding finding;
    if (policy_ == IsolationPolicy::kWarn || !alone_) {
      finding.line = fmt::format("dtrun: warning: {}; next: {}", found.what, found.next);
      if (alone_) finding.facts.push_back(fact::Noted{fact::Noted::What::kWorkedAlone, found.next});
    } else {
      finding.facts.push_back(fact::Isolated{std::move(found)});
      finding.then = Finding::Then::kStop;
    }
    return finding;
  }

  const IsolationPolicy policy_;
  std::vector<std::string> frameworks_;  // loaded by ranks
  bool alone_ = false;                   // a rank was seen training in a world of its own
  bool late_ = false;                    // a rank has not been seen joining for long
  bool judged_ = false;                  // once
};

}  // namespace

IsolationPolicy IsolationPolicyNamed(std::string_view word) {
  if (word == "fail") return IsolationPolicy::kFail;
  return word == "allow" ? IsolationPolicy::kAllow : IsolationPolicy::kWarn;
}

std::unique_ptr<Observer> WatchJoining(IsolationPolicy policy) { return std::make_unique<Joining>(policy); }

}  // namespace dtrun::observe
