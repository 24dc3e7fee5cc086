// The attempts of all hosts, and the interfaces that follow from them.
//
// Pure, so the same evidence gives the same result; owned by the root. Any thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/network/candidate.h"

namespace dtrun::network {

struct HostOffer {
  std::string name;
  std::string machine;  // equal for hosts on one machine, which need not reach each other
  Offer offer;
};

// One measured direction between two hosts.
struct MeasuredLink {
  int from = 0;
  int to = 0;
  Throughput seen;  // its loss is from a paced bandwidth probe: a full-rate one may overflow a switch
};

// One candidate per host, such that all hosts reach each other.
struct Assignment {
  std::vector<int> candidates;            // by host
  double bits_per_s = 0;                  // of the slowest measured link; 0: none measured
  std::chrono::nanoseconds round_trip{};  // of the slowest link
  double loss = 0;                        // of the worst link
  bool suspect = false;                   // a bandwidth probe lost packets, and no paced one has followed
  std::vector<MeasuredLink> links = {};

  // Computes bandwidth, round trip and loss from `links`.
  void Conclude();
};

// Pairs of hosts that must prove that they reach each other. Up to 32 hosts: all pairs. Beyond: a ring, every
// host with host 0, and three more for each host, always the same ones.
std::set<std::pair<int, int>> PairsToCheck(int hosts);

// Whether both addresses are in one network, according to either host.
bool OneNetwork(const Candidate& a, const Candidate& b);

// Whether candidate `from` may try `to`: same address family, different addresses, and in one network if
// `to`'s host has an address in the network of `from`.
bool Plausible(const Candidate& from, const Candidate& to, const std::vector<Candidate>& all_of_peer);

// The virtual bridge of a host with a network that contains `to`: packets that the host routes there go to
// its virtual machines or containers. Null if there is none, or if the network of `via` is narrower.
const LeftOut* TakerOf(const Offer& offer, const Candidate& via, const Ip& to);

class Evidence {
 public:
  explicit Evidence(std::vector<HostOffer> hosts);

  const std::vector<HostOffer>& hosts() const { return hosts_; }
  const std::string& NameOf(int host) const { return hosts_[static_cast<std::size_t>(host)].name; }
  const Candidate& CandidateOf(int host, int candidate) const {
    return hosts_[static_cast<std::size_t>(host)].offer.candidates[static_cast<std::size_t>(candidate)];
  }
  // The one that the assignment gives to `host`.
  const Candidate& CandidateOf(int host, const Assignment& assignment) const {
    return CandidateOf(host, assignment.candidates[static_cast<std::size_t>(host)]);
  }
  // Peers that `host` must try.
  std::vector<int> PeersOf(int host) const;
  void Add(int host, const std::vector<Attempt>& attempts);
  const std::vector<Attempt>& AttemptsOf(int host) const { return attempts_[static_cast<std::size_t>(host)]; }

  // Connections of the assignment with packets that take another interface than the candidate's.
  struct Detour {
    int host = 0, peer = 0;
    std::string leaves_by;
  };
  std::vector<Detour> DetoursOf(const Assignment& assignment) const;
  // Whether a virtual bridge may capture packets that one of these hosts routes to another.
  bool MayBeTaken(const Assignment& assignment) const;
  // At most `most` assignments, best first according to unmeasured properties.
  std::vector<Assignment> Assignments(std::size_t most) const;
  // The one to use among the measured ones. REQUIRES: not empty.
  const Assignment& Best(const std::vector<Assignment>& measured) const;
  // Checked pairs of hosts that no address pair connects in both directions.
  std::vector<std::pair<int, int>> Apart() const;
  // Lines on the failed attempts between these hosts, each after a line break: "\n  node0 eth0 10.0.0.1 to
  // node2 eth0 10.0.0.3: no answer".
  std::string PairText(int a, int b) const;
  // Why there is no assignment, and the next step.
  std::string Obstacle() const;
  // "10.6.0.1 is the address of node0 (eth1) and of node1 (eth1)": network card addresses that several
  // machines have. Virtual bridges have the same address everywhere by design.
  std::vector<std::string> Duplicates() const;

 private:
  struct Preference;
  bool Connected(int a, int from, int b, int to) const;  // in both directions
  bool OneMachine(int a, int b) const;
  std::vector<int> Ordered(int host, const Candidate* mate) const;
  bool Extend(std::vector<int>* chosen, int* steps) const;
  Preference PreferenceOf(const Assignment& assignment) const;
  // Whether packets use another candidate's network: that below a tunnel, or the one by which all leave.
  bool ThroughAnother(const Assignment& assignment) const;
  // Whether all hosts use the same interfaces in both, with no router between hosts.
  bool SameCables(const Assignment& a, const Assignment& b) const;
  // "; docker0 of node0 (172.17.0.1/16) has 172.17.6.1 in its network"; empty if no bridge does.
  std::string TakenText(int host, const Candidate& from, int peer, const Candidate& to) const;
  // For an address that several machines have; otherwise empty.
  std::string DuplicateText(const Ip& address) const;

  std::vector<HostOffer> hosts_;
  std::set<std::pair<int, int>> pairs_;
  std::vector<std::vector<Attempt>> attempts_;  // by host
  std::set<std::pair<std::pair<int, int>, std::pair<int, int>>> connected_;
  std::map<std::pair<std::pair<int, int>, std::pair<int, int>>, std::string> detours_;
  std::map<Ip, std::vector<std::pair<int, int>>> holders_;  // host and candidate, by address
};

}  // namespace dtrun::network
