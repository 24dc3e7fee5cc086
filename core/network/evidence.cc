#include "core/network/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <random>
#include <tuple>

namespace dtrun::network {
namespace {

constexpr int kAllPairsUpTo = 32;
constexpr int kRandomPeers = 3;
constexpr int kMostSteps = 100'000;  // search limit, reached only in unusual networks
constexpr std::size_t kMostPairsNamed = 3;
constexpr char kIsTheAddress[] = " is the address ";
constexpr char kInItsNetwork[] = " in its network";
// Measurements that differ by less count as equal.
constexpr double kAsFast = 0.6;

// A lost packet with nothing after it is retransmitted after 200 ms while all ranks wait. One lost packet in
// a hundred cuts a network to a tenth of its measured bandwidth.
constexpr double kLossCost = 1000;

double Worth(const Assignment& one) { return one.bits_per_s / (1 + kLossCost * one.loss); }

int Penalty(Kind kind) {
  switch (kind) {
    case Kind::kPhysical:
    case Kind::kBond:
    case Kind::kVlan:
    case Kind::kVeth: return 0;
    case Kind::kBridge:
    case Kind::kVirtual: return 1;
    case Kind::kLoopback: return 2;  // a routable address assigned to it
    case Kind::kTunnel: return 3;
  }
  return 1;
}

std::set<std::pair<int, int>> SparsePairs(int hosts) {
  std::set<std::pair<int, int>> pairs;
  const auto add = [&](int a, int b) {
    if (a != b) pairs.emplace(std::min(a, b), std::max(a, b));
  };
  std::minstd_rand random(static_cast<unsigned>(hosts));
  for (int host = 0; host < hosts; ++host) {
    add(host, (host + 1) % hosts);
    add(host, 0);
    for (int i = 0; i < kRandomPeers; ++i)
      add(host, static_cast<int>(random() % static_cast<unsigned>(hosts)));
  }
  return pairs;
}

}  // namespace

// Smaller is better, compared in this order.
struct Evidence::Preference {
  std::size_t detours = 0;
  std::int64_t unknown_or_slow = 0;  // negative speed of the slowest card; 0: not all known, or measured
  int without_rdma = 0;
  int penalty = 0;
  int without_default_route = 0;
  int ipv6 = 0;
  std::int64_t indices = 0;
  // Among several addresses of one interface, libraries use the first if given the name.
  int not_first_address = 0, not_of_ssh = 0;
  auto operator<=>(const Preference&) const = default;  // NOLINT(modernize-use-nullptr): of the compiler
};

void Assignment::Conclude() {
  bits_per_s = links.empty() ? 0 : links.front().seen.bits_per_s;
  round_trip = {};
  loss = 0;
  for (const MeasuredLink& link : links) {
    bits_per_s = std::min(bits_per_s, link.seen.bits_per_s);
    round_trip = std::max(round_trip, link.seen.round_trip);
    loss = std::max(loss, link.seen.loss);
  }
}

std::set<std::pair<int, int>> PairsToCheck(int hosts) {
  if (hosts > kAllPairsUpTo) return SparsePairs(hosts);
  std::set<std::pair<int, int>> pairs;
  for (int a = 0; a < hosts; ++a) {
    for (int b = a + 1; b < hosts; ++b) pairs.emplace(a, b);
  }
  return pairs;
}

bool OneNetwork(const Candidate& a, const Candidate& b) {
  return a.address.ip != b.address.ip && (InNetwork(a.address.ip, b.address.ip, b.address.prefix) ||
                                          InNetwork(b.address.ip, a.address.ip, a.address.prefix));
}

bool Plausible(const Candidate& from, const Candidate& to, const std::vector<Candidate>& all_of_peer) {
  const auto family = [&](const Candidate& one) {
    return one.address.ip.is_v6() == from.address.ip.is_v6() &&
           one.address.link_local() == from.address.link_local();
  };
  if (!family(to) || from.address.ip == to.address.ip) return false;
  if (OneNetwork(from, to)) return true;
  return std::ranges::none_of(all_of_peer,
                              [&](const Candidate& one) { return family(one) && OneNetwork(from, one); });
}

const LeftOut* TakerOf(const Offer& offer, const Candidate& via, const Ip& to) {
  for (const LeftOut& one : offer.left_out) {
    const auto slash = one.address.find('/');
    if (one.kind != Kind::kBridge || slash == std::string::npos) continue;
    error_code unreadable;
    const Ip own = asio::ip::make_address(one.address.substr(0, slash), unreadable);
    const int prefix = std::atoi(one.address.c_str() + slash + 1);
    if (unreadable || prefix <= 0 || own == to || !InNetwork(to, own, prefix)) continue;
    const bool narrower = via.address.prefix >= prefix && InNetwork(to, via.address.ip, via.address.prefix);
    if (!narrower) return &one;
  }
  return nullptr;
}

Evidence::Evidence(std::vector<HostOffer> hosts)
    : hosts_(std::move(hosts)),
      pairs_(PairsToCheck(static_cast<int>(hosts_.size()))),
      attempts_(hosts_.size()) {
  std::erase_if(pairs_, [this](const auto& pair) { return OneMachine(pair.first, pair.second); });
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const auto& candidates = hosts_[host].offer.candidates;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      holders_[candidates[i].address.ip].emplace_back(static_cast<int>(host), static_cast<int>(i));
  }
}

std::vector<std::string> Evidence::Duplicates() const {
  std::vector<std::string> texts;
  for (const auto& [address, holders] : holders_) {
    const auto card = [this](const auto& holder) {
      const Candidate& one = CandidateOf(holder.first, holder.second);
      return one.first_address && Penalty(one.kind) == 0;
    };
    std::string text = std::ranges::any_of(holders, card) ? DuplicateText(address) : "";
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

std::string Evidence::DuplicateText(const Ip& address) const {
  const auto found = holders_.find(address);
  if (found == holders_.end()) return {};
  std::string text;
  std::size_t named = 0;
  bool shared = false;
  for (const auto& [host, candidate] : found->second) {
    shared = shared || !OneMachine(host, found->second.front().first);
    if (++named > kMostPairsNamed) continue;
    text += fmt::format("{}of {} ({})", text.empty() ? "" : " and ", NameOf(host),
                        CandidateOf(host, candidate).interface);
  }
  if (!shared) return {};
  if (named > kMostPairsNamed) text += fmt::format(" and {} more", named - kMostPairsNamed);
  return address.to_string() + kIsTheAddress + text;
}

std::string Evidence::TakenText(int host, const Candidate& from, int peer, const Candidate& to) const {
  const auto text = [this](int of, const Candidate& via, const Ip& address) -> std::string {
    const HostOffer& one = hosts_[static_cast<std::size_t>(of)];
    const LeftOut* const taker = TakerOf(one.offer, via, address);
    if (taker == nullptr) return {};
    return fmt::format("; {} of {} ({}) has {}{}", taker->interface, one.name, taker->address,
                       address.to_string(), kInItsNetwork);
  };
  const std::string there = text(host, from, to.address.ip);
  return there.empty() ? text(peer, to, from.address.ip) : there;  // or the bridge captures the answer
}

bool Evidence::MayBeTaken(const Assignment& assignment) const {
  return std::ranges::any_of(pairs_, [&](const auto& pair) {
    const auto& [a, b] = pair;
    return !TakenText(a, CandidateOf(a, assignment), b, CandidateOf(b, assignment)).empty();
  });
}

std::vector<Evidence::Detour> Evidence::DetoursOf(const Assignment& assignment) const {
  std::vector<Detour> out;
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    for (const int peer : PeersOf(host)) {
      const auto found = detours_.find({{host, assignment.candidates[static_cast<std::size_t>(host)]},
                                        {peer, assignment.candidates[static_cast<std::size_t>(peer)]}});
      if (found != detours_.end()) out.push_back({host, peer, found->second});
    }
  }
  return out;
}

bool Evidence::OneMachine(int a, int b) const {
  return hosts_[static_cast<std::size_t>(a)].machine == hosts_[static_cast<std::size_t>(b)].machine;
}

std::vector<int> Evidence::PeersOf(int host) const {
  std::vector<int> peers;
  for (const auto& [a, b] : pairs_) {
    if (a == host || b == host) peers.push_back(a == host ? b : a);
  }
  return peers;
}

void Evidence::Add(int host, const std::vector<Attempt>& attempts) {
  auto& all = attempts_[static_cast<std::size_t>(host)];
  for (const Attempt& attempt : attempts) {
    all.push_back(attempt);
    if (!attempt.leaves_by.empty())
      detours_[{{host, attempt.from}, {attempt.peer, attempt.to}}] = attempt.leaves_by;
    if (attempt.connected()) {
      connected_.insert({{host, attempt.from}, {attempt.peer, attempt.to}});
      continue;
    }
    const Candidate &from = CandidateOf(host, attempt.from), &to = CandidateOf(attempt.peer, attempt.to);
    all.back().why += TakenText(host, from, attempt.peer, to);
    if (!OneNetwork(from, to))
      continue;  // for example from a virtual bridge, which has one address on all hosts
    // Regardless of the result: the host's packets, or the answers, may have reached the wrong host.
    std::string duplicate = DuplicateText(to.address.ip);
    if (duplicate.empty()) duplicate = DuplicateText(from.address.ip);
    if (!duplicate.empty()) all.back().why = std::move(duplicate);
  }
}

bool Evidence::Connected(int a, int from, int b, int to) const {
  return connected_.contains({{a, from}, {b, to}}) && connected_.contains({{b, to}, {a, from}});
}

// Candidates of `host`: first those in the network of `mate`, then by preference.
std::vector<int> Evidence::Ordered(int host, const Candidate* mate) const {
  const auto& candidates = hosts_[static_cast<std::size_t>(host)].offer.candidates;
  std::vector<int> order(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto key = [&](int i) {
    const Candidate& one = candidates[static_cast<std::size_t>(i)];
    return std::tuple(mate != nullptr && !OneNetwork(*mate, one), one.rdma.empty(), Penalty(one.kind),
                      !one.default_route, one.address.ip.is_v6(), one.index, !one.first_address, !one.of_ssh,
                      i);
  };
  std::ranges::sort(order, {}, key);
  return order;
}

// Depth-first search; true if every host has a candidate.
bool Evidence::Extend(std::vector<int>* chosen, int* steps) const {
  const int host = static_cast<int>(chosen->size());
  if (host == static_cast<int>(hosts_.size())) return true;
  const Candidate& first = CandidateOf(0, chosen->front());
  for (const int candidate : Ordered(host, &first)) {
    if (++*steps > kMostSteps) return false;
    bool fits = true;
    for (int other = 0; other < host && fits; ++other) {
      const int theirs = (*chosen)[static_cast<std::size_t>(other)];
      fits = !pairs_.contains({other, host}) || Connected(other, theirs, host, candidate);
    }
    if (!fits) continue;
    chosen->push_back(candidate);
    if (Extend(chosen, steps)) return true;
    chosen->pop_back();
  }
  return false;
}

Evidence::Preference Evidence::PreferenceOf(const Assignment& assignment) const {
  Preference out;
  bool known = true;
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    const Candidate& one = CandidateOf(host, assignment);
    known = known && one.speed_mbps > 0;
    out.unknown_or_slow = host == 0 ? -one.speed_mbps : std::max(out.unknown_or_slow, -one.speed_mbps);
    out.without_rdma += one.rdma.empty() ? 1 : 0;
    out.penalty += Penalty(one.kind);
    out.without_default_route += one.default_route ? 0 : 1;
    out.ipv6 += one.address.ip.is_v6() ? 1 : 0;
    out.indices += one.index;
    out.not_of_ssh += one.of_ssh ? 0 : 1;
    out.not_first_address += one.first_address ? 0 : 1;
  }
  out.detours = DetoursOf(assignment).size();
  if (!known || assignment.bits_per_s > 0) out.unknown_or_slow = 0;
  return out;
}

std::vector<Assignment> Evidence::Assignments(std::size_t most) const {
  std::vector<Assignment> found;
  int steps = 0;
  for (const int first : Ordered(0, nullptr)) {
    std::vector<int> chosen{first};
    if (Extend(&chosen, &steps)) found.push_back({std::move(chosen)});
  }
  std::ranges::stable_sort(found, {}, [this](const Assignment& one) { return PreferenceOf(one); });
  if (found.size() > most) found.resize(most);
  return found;
}

bool Evidence::ThroughAnother(const Assignment& assignment) const {
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    if (CandidateOf(host, assignment).kind == Kind::kTunnel) return true;
  }
  return !pairs_.empty() && DetoursOf(assignment).size() == 2 * pairs_.size();
}

bool Evidence::SameCables(const Assignment& a, const Assignment& b) const {
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    if (CandidateOf(host, a).interface != CandidateOf(host, b).interface) return false;
  }
  return std::ranges::all_of(pairs_, [&](const auto& pair) {
    return OneNetwork(CandidateOf(pair.first, a), CandidateOf(pair.second, a)) &&
           OneNetwork(CandidateOf(pair.first, b), CandidateOf(pair.second, b));
  });
}

const Assignment& Evidence::Best(const std::vector<Assignment>& measured) const {
  // Neither a tunnel is faster than the network below it, nor one cable with another address, even if a
  // bandwidth probe on a busy host suggests so.
  const auto through_another = [this](const Assignment& one) { return ThroughAnother(one); };
  const bool all = std::ranges::all_of(measured, through_another);
  const auto worth = [&](const Assignment& one) {
    double most = Worth(one);
    for (const Assignment& other : measured) {
      if (SameCables(one, other)) most = std::max(most, Worth(other));
    }
    return most;
  };
  double fastest = 0;
  for (const Assignment& one : measured) {
    if (all || !through_another(one)) fastest = std::max(fastest, worth(one));
  }
  const Assignment* best = nullptr;
  for (const Assignment& one : measured) {
    if (worth(one) < kAsFast * fastest || (through_another(one) && !all)) continue;
    if (best == nullptr || PreferenceOf(one) < PreferenceOf(*best)) best = &one;
  }
  return *best;
}

std::string Evidence::PairText(int a, int b) const {
  std::string text;
  std::size_t named = 0;
  for (const auto& [host, peer] : {std::pair(a, b), std::pair(b, a)}) {
    const HostOffer& from = hosts_[static_cast<std::size_t>(host)];
    const HostOffer& to = hosts_[static_cast<std::size_t>(peer)];
    bool tried = false;
    for (const Attempt& attempt : attempts_[static_cast<std::size_t>(host)]) {
      if (attempt.peer != peer) continue;
      tried = true;
      // If a pair works in one direction, the failed direction tells more.
      if (attempt.connected() || ++named > kMostPairsNamed) continue;
      text += fmt::format("\n  {} {} to {} {}: {}", from.name, CandidateOf(host, attempt.from).Text(),
                          to.name, CandidateOf(peer, attempt.to).Text(), attempt.why);
    }
    if (tried || named++ >= kMostPairsNamed) continue;
    std::string why = "no address of the one could reach an address of the other";
    for (const Candidate& one : from.offer.candidates) {
      const auto same = [&](const Candidate& other) { return other.address.ip == one.address.ip; };
      if (std::ranges::any_of(to.offer.candidates, same)) why = DuplicateText(one.address.ip);
    }
    text += fmt::format("\n  {} to {}: {}", from.name, to.name, why);
  }
  return text;
}

std::vector<std::pair<int, int>> Evidence::Apart() const {
  std::vector<std::pair<int, int>> apart;
  for (const auto& [a, b] : pairs_) {
    const auto joins = [&, a = a, b = b](const Attempt& one) {
      return one.peer == b && Connected(a, one.from, b, one.to);
    };
    if (std::ranges::none_of(AttemptsOf(a), joins)) apart.emplace_back(a, b);
  }
  return apart;
}

std::string Evidence::Obstacle() const {
  const std::vector<std::pair<int, int>> apart = Apart();
  std::string text;
  for (std::size_t i = 0; i < apart.size() && i < kMostPairsNamed; ++i)
    text += PairText(apart[i].first, apart[i].second);
  if (apart.empty()) {
    return "hosts reach each other, but none of them at one address that serves all others; put all hosts "
           "into "
           "one network, or name their interfaces in network.interface";
  }
  if (apart.size() > kMostPairsNamed)
    text += fmt::format("\n  and {} more pairs of hosts", apart.size() - kMostPairsNamed);
  std::string fix = "open a network between them, for all ports or for those of cluster.port_range";
  if (text.find(kInItsNetwork) != text.npos)
    fix =
        "give that bridge another network (for Docker \"bip\" and \"default-address-pools\" in "
        "/etc/docker/daemon.json), or give every host a more specific route to the others";
  if (text.find(kIsTheAddress) != text.npos) fix = "give every host an address of its own";
  return fmt::format("hosts cannot reach each other in both directions:{}\n  {}", text, fix);
}

}  // namespace dtrun::network
