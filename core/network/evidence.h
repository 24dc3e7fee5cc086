// What all hosts have tried, and which of their interfaces follow from it.
//
// Pure, so that the same evidence gives the same answer; the root keeps it. Any thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/network/attempt.h"
#include "core/network/candidate.h"

namespace dtrun::network {

struct HostOffer {
  std::string name;
  std::string machine;  // equal for hosts that are one machine, which need not reach each other
  Offer offer;
};

// One direction between two hosts that was measured.
struct MeasuredLink {
  int from = 0;
  int to = 0;
  Throughput seen;  // its loss is that of a calm bandwidth probe: a rush alone may overflow a switch
};

// One candidate for every host, such that all hosts reach each other.
struct Assignment {
  std::vector<int> candidates;            // by host
  double bits_per_s = 0;                  // of the slowest link that was measured; 0: none was
  std::chrono::nanoseconds round_trip{};  // of the slowest
  double loss = 0;                        // of the worst
  bool suspect = false;                   // a bandwidth probe lost packets, and no calm one has followed
  std::vector<MeasuredLink> links = {};

  // Takes the three from `links`.
  void Conclude();
};

// Pairs of hosts that have to prove that they reach each other: all up to 32 hosts; beyond, a
// ring, everyone with host 0, and three more for each host, the same ones every time.
std::set<std::pair<int, int>> PairsToCheck(int hosts);

// Whether they are two addresses of one network, by what either knows of it.
bool OneNetwork(const Candidate& a, const Candidate& b);

// Whether the candidate `from` may try `to`: one family, not the same address on both hosts, and in
// one network where `to`'s host has an address in the network of `from`.
bool Plausible(const Candidate& from, const Candidate& to, const std::vector<Candidate>& all_of_peer);

// The virtual bridge of a host in whose network `to` lies, so that what the host sends there by its routes
// goes to its virtual machines or containers; null where there is none, or the network of `via` is the
// narrower one.
const LeftOut* TakerOf(const Offer& offer, const Candidate& via, const Ip& to);

class Evidence {
 public:
  explicit Evidence(std::vector<HostOffer> hosts);

  const std::vector<HostOffer>& hosts() const { return hosts_; }
  // Peers that `host` has to try.
  std::vector<int> PeersOf(int host) const;
  void Add(int host, const std::vector<Attempt>& attempts);
  const std::vector<Attempt>& AttemptsOf(int host) const { return attempts_[static_cast<std::size_t>(host)]; }

  // Those of the assignment's connections whose packets take another interface than its candidate's.
  struct Detour {
    int host = 0, peer = 0;
    std::string leaves_by;
  };
  std::vector<Detour> DetoursOf(const Assignment& assignment) const;
  // Whether a virtual bridge may take what one of these hosts sends to another by its routes.
  bool MayBeTaken(const Assignment& assignment) const;
  // The best ones first by what is known without measuring; at most `most`.
  std::vector<Assignment> Assignments(std::size_t most) const;
  // The one to take of those that were measured. REQUIRES: not empty.
  const Assignment& Best(const std::vector<Assignment>& measured) const;
  // Why there is no assignment, and what to do.
  std::string Obstacle() const;
  // "10.6.0.1 is the address of node0 (eth1) and of node1 (eth1)": those of cards that several machines have.
  // Virtual bridges have one address everywhere, by design.
  std::vector<std::string> Duplicates() const;

 private:
  struct Preference;
  bool Connected(int a, int from, int b, int to) const;  // both ways
  bool OneMachine(int a, int b) const;
  std::vector<int> Ordered(int host, const Candidate* mate) const;
  bool Extend(std::vector<int>* chosen, int* steps) const;
  Preference PreferenceOf(const Assignment& assignment) const;
  // Of another network, at some host.
  bool OnTop(const Assignment& assignment) const;
  std::string PairText(int a, int b) const;
  // "; docker0 of node0 (172.17.0.1/16) has 172.17.6.1 in its network"; empty where no bridge has.
  std::string TakenText(int host, const Candidate& from, int peer, const Candidate& to) const;
  // Of an address that several machines have; else empty.
  std::string DuplicateText(const Ip& address) const;

  std::vector<HostOffer> hosts_;
  std::set<std::pair<int, int>> pairs_;
  std::vector<std::vector<Attempt>> attempts_;  // by host
  std::set<std::pair<std::pair<int, int>, std::pair<int, int>>> connected_;
  std::map<std::pair<std::pair<int, int>, std::pair<int, int>>, std::string> detours_;
  std::map<Ip, std::vector<std::pair<int, int>>> holders_;  // host and candidate, by address
};

}  // namespace dtrun::network
