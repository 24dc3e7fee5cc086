#include "core/membership/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/base/visit.h"
#include "core/network/handshake.h"
#include "core/network/rule.h"
#include "core/network/weakness.h"

namespace dtrun::membership {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{2};
// The second try is not bound to interfaces and is the last one: a busy host gets more time.
constexpr std::chrono::seconds kLastLimit{5};
constexpr std::size_t kMostMeasured = 4;
constexpr int kMostRepeats = 2;
constexpr std::size_t kMostRefusals = 3;
constexpr double kSuspectLoss = 0.005;

Error At(const plan::NetworkRule& rule, const std::string& text) {
  return Error::Of(DTRUN_INVALID_ARGUMENT, "{}: {}", rule.place, text);
}

bool AllSlow(const std::vector<network::Assignment>& assignments) {
  constexpr double kSlowBitsPerS = 200e6;  // slower than any cluster network card, unless the CPUs are busy
  return std::ranges::all_of(assignments,
                             [](const network::Assignment& one) { return one.bits_per_s < kSlowBitsPerS; });
}

}  // namespace

NetworkSearch::NetworkSearch(asio::io_context& loop, process::UserSignals& signals,
                             std::vector<Member> members)
    : loop_(loop), signals_(signals), members_(std::move(members)), answers_(members_.size()) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].host->Attach([this, i](const protocol::Event& event) { On(i, event); });
  }
  signals_.NoteEndIn(&interrupted_);
}

NetworkSearch::~NetworkSearch() {
  signals_.Handle({});
  for (const Member& member : members_) member.host->Attach([](const protocol::Event&) {});
}

void NetworkSearch::On(std::size_t host, const protocol::Event& event) {
  Answer& answer = answers_[host];
  Visit(
      [&]<class T>(const T& seen) {
        if constexpr (std::is_same_v<T, protocol::Surveyed>) {
          answer.offer = seen.offer;
        } else if constexpr (std::is_same_v<T, protocol::ConnectivityChecked>) {
          answer.attempts = seen.attempts;
        } else if constexpr (std::is_same_v<T, protocol::Measured>) {
          answer.throughput = seen.throughput;
        } else if constexpr (std::is_same_v<T, protocol::Refused>) {
          // The user's rule may fit no host: wait for all answers.
          if (seen.error.code == DTRUN_INVALID_ARGUMENT) {
            answer.refusal = seen.error.text;
          } else {
            return Fail({seen.error.code, fmt::format("host {}: {}", members_[host].name, seen.error.text)});
          }
        } else if constexpr (std::is_same_v<T, protocol::Lost>) {
          return Fail(
              {DTRUN_REMOTE_FAILURE, fmt::format("host {} was lost: {}", members_[host].name, seen.why)});
        } else if constexpr (std::is_same_v<T, protocol::Asked>) {
          if (process::UserSignals::EndsJob(seen.signal)) interrupted_ = seen.signal;
          return;
        } else {
          return;
        }
        answer.due = false;
      },
      event);
}

void NetworkSearch::Fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

void NetworkSearch::Tell(std::size_t host, const protocol::Command& command) {
  answers_[host].due = true;
  members_[host].host->Do(command);
}

Status NetworkSearch::AwaitAnswers() {
  while (std::ranges::any_of(answers_, &Answer::due) && !failure_ && interrupted_ == 0 &&
         loop_.run_one() > 0) {
  }
  if (failure_) return *failure_;
  if (interrupted_ != 0) return Error{DTRUN_ABORTED, "the job was ended while dtrun looked for its network"};
  return {};
}

// An error with the hosts that cannot apply their rules, the first few in full.
Status NetworkSearch::Refusals(const std::vector<plan::NetworkRule>& rules) const {
  const plan::NetworkRule* first = nullptr;
  std::string text;
  std::size_t told = 0, untold = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (answers_[i].refusal.empty()) continue;
    if (first == nullptr) first = &rules[i];
    if (told == kMostRefusals) {
      ++untold;
      continue;
    }
    text += fmt::format("{}host {}: {}", told++ == 0 ? "" : "; ", members_[i].name, answers_[i].refusal);
  }
  if (first == nullptr) return {};
  return At(*first, untold == 0 ? text
                                : fmt::format("{}; the same on {} more host{}", text, untold,
                                              untold == 1 ? "" : "s"));
}

Status NetworkSearch::SurveyAll(const std::vector<plan::NetworkRule>& rules,
                                std::vector<network::HostOffer>* offers) {
  const std::string key = network::NewConnectivityKey();
  for (std::size_t i = 0; i < members_.size(); ++i)
    Tell(i, protocol::Survey{static_cast<int>(i), rules[i].text, key});
  if (Status answered = AwaitAnswers(); !answered) return answered;
  if (Status accepted = Refusals(rules); !accepted) return accepted;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    offers->push_back({members_[i].name, members_[i].machine, std::move(answers_[i].offer)});
  }
  return CheckEntries(rules, *offers);
}

Status NetworkSearch::Connect(std::vector<network::HostOffer> hosts, bool by_device,
                              std::chrono::nanoseconds limit) {
  evidence_ = network::Evidence(std::move(hosts));
  for (std::size_t i = 0; i < members_.size(); ++i) {
    protocol::CheckConnectivity check;
    check.by_device = by_device;
    check.limit = limit;
    for (const int peer : evidence_.PeersOf(static_cast<int>(i))) {
      check.peers.push_back({peer, evidence_.hosts()[static_cast<std::size_t>(peer)].offer.candidates});
    }
    if (!check.peers.empty()) Tell(i, check);
  }
  if (Status answered = AwaitAnswers(); !answered) return answered;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    evidence_.Add(static_cast<int>(i), std::exchange(answers_[i].attempts, {}));
  }
  return {};
}

// Measures around a ring, so that every host sends and receives at once, as in a collective.
Status NetworkSearch::MeasureAll(bool by_device, network::Assignment* assignment) {
  assignment->links.clear();
  const std::size_t count = members_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = (i + 1) % count;
    if (members_[i].machine == members_[next].machine) continue;
    assignment->links.push_back({static_cast<int>(i), static_cast<int>(next), {}});
  }
  if (Status sent = Send(by_device, *assignment, &assignment->links); !sent) return sent;
  assignment->Conclude();
  assignment->suspect = assignment->loss >= kSuspectLoss;
  for (network::MeasuredLink& link : assignment->links) link.seen.loss = 0;
  assignment->Conclude();
  return {};
}

// Packets lost in a bandwidth probe are checked again with a probe at half its rate.
Status NetworkSearch::ConfirmLoss(bool by_device, network::Assignment* assignment) {
  std::vector<network::MeasuredLink> calm = assignment->links;
  if (Status sent = Send(by_device, *assignment, &calm); !sent) return sent;
  for (std::size_t i = 0; i < calm.size(); ++i) {
    const network::Throughput& seen = calm[i].seen;
    const double loss = seen.bits_per_s > 0 ? seen.loss : 1;  // the probe did not finish
    assignment->links[i].seen.loss = loss < kSuspectLoss ? 0 : loss;
  }
  assignment->suspect = false;
  assignment->Conclude();
  return {};
}

// Runs a bandwidth probe on each of `links`, at half its measured rate.
Status NetworkSearch::Send(bool by_device, const network::Assignment& assignment,
                           std::vector<network::MeasuredLink>* links) {
  for (const network::MeasuredLink& link : *links) {
    const auto from = static_cast<std::size_t>(link.from), to = static_cast<std::size_t>(link.to);
    const auto& theirs = evidence_.hosts()[to].offer.candidates;
    Tell(from, protocol::Measure{assignment.candidates[from], link.to,
                                 theirs[static_cast<std::size_t>(assignment.candidates[to])], by_device,
                                 link.seen.bits_per_s / 2});
  }
  if (Status answered = AwaitAnswers(); !answered) return answered;
  for (network::MeasuredLink& link : *links) {
    const network::Throughput& seen = answers_[static_cast<std::size_t>(link.from)].throughput;
    // The numbers come from another host and may be invalid.
    link.seen =
        std::isfinite(seen.bits_per_s) && seen.loss >= 0 && seen.loss <= 1 ? seen : network::Throughput();
  }
  return {};
}

// For each link the faster result counts.
Status NetworkSearch::MeasureAgain(bool by_device, std::span<network::Assignment> assignments) {
  for (network::Assignment& one : assignments) {
    network::Assignment again = one;
    if (Status measured = MeasureAll(by_device, &again); !measured) return measured;
    for (std::size_t i = 0; i < one.links.size(); ++i) {
      network::Throughput& seen = one.links[i].seen;
      const double loss = seen.loss;
      if (again.links[i].seen.bits_per_s > seen.bits_per_s) seen = again.links[i].seen;
      seen.loss = loss;
    }
    one.suspect = one.suspect || again.suspect;
    one.Conclude();
  }
  return {};
}

Result<network::Decision> NetworkSearch::Run(const std::vector<plan::NetworkRule>& rules) {
  network::Effort effort;
  Clock::time_point begin = Clock::now();
  const auto lap = [&begin] { return Clock::now() - std::exchange(begin, Clock::now()); };
  std::vector<network::HostOffer> offers;
  if (Status surveyed = SurveyAll(rules, &offers); !surveyed) return surveyed.error();
  effort.survey = lap();
  bool by_device = true;
  if (Status connected = Connect(std::move(offers), by_device, kLimit); !connected) return connected.error();
  std::vector<network::Assignment> assignments = evidence_.Assignments(kMostMeasured);
  // Libraries use the routes, not a device.
  if (assignments.empty() || evidence_.MayBeTaken(assignments.front())) {
    by_device = false;
    if (Status connected = Connect(std::vector(evidence_.hosts()), by_device, kLastLimit); !connected)
      return connected.error();
    assignments = evidence_.Assignments(kMostMeasured);
  }
  if (assignments.empty()) return Error{DTRUN_FAILED_PRECONDITION, evidence_.Obstacle()};
  effort.connectivity = lap();
  for (network::Assignment& one : assignments) {
    if (Status measured = MeasureAll(by_device, &one); !measured) return measured.error();
  }
  const auto best_index = [&] {
    return static_cast<std::size_t>(&evidence_.Best(assignments) - assignments.data());
  };
  // Other load can make a bandwidth probe slower than its network, never faster. So while all results are
  // slow, measure all again; then measure again those that would be preferred to the fastest.
  for (int i = 0; i < kMostRepeats && assignments.size() > 1 && AllSlow(assignments); ++i) {
    if (Status measured = MeasureAgain(by_device, assignments); !measured) return measured.error();
  }
  if (Status measured = MeasureAgain(by_device, std::span(assignments).first(best_index())); !measured)
    return measured.error();
  std::size_t best = best_index();
  for (; assignments[best].suspect; best = best_index()) {
    if (Status confirmed = ConfirmLoss(by_device, &assignments[best]); !confirmed) return confirmed.error();
  }
  // Measure again before reporting a host as slow.
  for (int i = 0; i < kMostRepeats && !network::SlowLinks(assignments[best]).empty(); ++i) {
    if (Status measured = MeasureAgain(by_device, std::span(assignments).subspan(best, 1)); !measured)
      return measured.error();
  }
  const network::Assignment chosen = assignments[best];
  effort.measurement = lap();
  std::vector<bool> asked_for;
  for (const plan::NetworkRule& rule : rules) asked_for.push_back(network::Rule::Parse(rule.text)->chooses());
  return network::Decision{evidence_, std::move(assignments), chosen, std::move(asked_for), by_device,
                           effort};
}

Result<network::Evidence> NetworkSearch::CheckAgain(const std::vector<plan::NetworkRule>& rules) {
  std::vector<network::HostOffer> offers;
  if (Status surveyed = SurveyAll(rules, &offers); !surveyed) return surveyed.error();
  if (Status connected = Connect(std::move(offers), false, kLastLimit); !connected) return connected.error();
  return evidence_;
}

Status CheckNamesHere(const plan::NetworkRule& rule) {
  const Result<std::vector<network::Interface>> interfaces = network::ReadInterfaces();
  if (!interfaces) return interfaces.error();
  const Result<network::Rule> parsed = network::Rule::Parse(rule.text);
  if (!parsed) return At(rule, parsed.error().text);
  const Status named = parsed->CheckNames(*interfaces);
  return named ? Status() : At(rule, named.error().text);
}

Status CheckEntries(const std::vector<plan::NetworkRule>& rules,
                    const std::vector<network::HostOffer>& offers) {
  std::map<std::string, std::vector<std::size_t>> hosts_of;  // by rule text
  for (std::size_t i = 0; i < rules.size(); ++i) hosts_of[rules[i].text].push_back(i);
  for (const auto& [text, hosts] : hosts_of) {
    for (const std::string& entry : offers[hosts.front()].offer.unmatched) {
      const bool nowhere = std::ranges::all_of(hosts, [&](std::size_t host) {
        return std::ranges::find(offers[host].offer.unmatched, entry) != offers[host].offer.unmatched.end();
      });
      if (!nowhere) continue;
      std::set<std::string> names;
      for (const std::size_t host : hosts) {
        for (const network::Candidate& one : offers[host].offer.candidates) names.insert(one.interface);
        for (const network::LeftOut& one : offers[host].offer.left_out) names.insert(one.interface);
      }
      const auto nearest = Nearest(entry, {names.begin(), names.end()});
      return At(rules[hosts.front()],
                fmt::format("no host has an interface '{}'{}", entry,
                            nearest ? fmt::format("; did you mean '{}'?", *nearest) : "; remove it"));
    }
  }
  return {};
}

}  // namespace dtrun::membership
