#include "core/node/network_answers.h"

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "core/network/rule.h"

namespace dtrun::node {
namespace {

// The address where ssh has reached this host: the third word of SSH_CONNECTION.
std::string AddressOfSsh() {
  const char* const connection = std::getenv("SSH_CONNECTION");
  std::istringstream words(connection == nullptr ? "" : connection);
  std::string client, client_port, server;
  words >> client >> client_port >> server;
  return server;
}

}  // namespace

void NetworkAnswers::Answer(const protocol::Survey& survey) {
  const Result<network::Rule> rule = network::Rule::Parse(survey.rule);
  if (!rule) return answer_(protocol::Refused{rule.error()});
  const Result<std::vector<network::Interface>> interfaces = network::ReadInterfaces();
  if (!interfaces) return answer_(protocol::Refused{interfaces.error()});
  Result<network::Offer> offer = rule->Apply(*interfaces);
  if (!offer) return answer_(protocol::Refused{offer.error()});
  offer->has_rdma = network::HasRdma("/sys");
  const std::string of_ssh = AddressOfSsh();
  for (network::Candidate& one : offer->candidates) one.of_ssh = one.address.ip.to_string() == of_ssh;
  check_.emplace(loop_, survey.host, survey.connectivity_key, &*offer);
  answer_(protocol::Surveyed{*std::move(offer)});
}

void NetworkAnswers::Answer(const protocol::CheckConnectivity& check) {
  if (!check_) return answer_(protocol::ConnectivityChecked{});
  check_->Run(check.peers, check.by_device, check.limit, [this](std::vector<network::Attempt> attempts) {
    answer_(protocol::ConnectivityChecked{std::move(attempts)});
  });
}

void NetworkAnswers::Answer(const protocol::Measure& measure) {
  const auto from = static_cast<std::size_t>(measure.from);
  if (!check_ || from >= check_->candidate_count()) return answer_(protocol::Measured{});
  check_->Measure(from, measure.peer, measure.to, measure.by_device, measure.pace,
                  [this](network::Throughput throughput) { answer_(protocol::Measured{throughput}); });
}

}  // namespace dtrun::node
