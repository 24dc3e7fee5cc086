// This host's answers while the root searches for the network between the hosts: its interfaces, the hosts it
// can reach, and the bandwidth.
//
// Owned by the local host; loop thread. Listens from the first request until Close.
#pragma once

#include <functional>
#include <optional>

#include "core/base/asio.h"
#include "core/network/connectivity_check.h"
#include "core/protocol/host.h"

namespace dtrun::node {

class NetworkAnswers {
 public:
  // `answer` is not called from inside the functions below.
  NetworkAnswers(asio::io_context& loop, std::function<void(protocol::Event)> answer)
      : loop_(loop), answer_(std::move(answer)) {}

  void Answer(const protocol::Survey& survey);
  void Answer(const protocol::CheckConnectivity& check);
  void Answer(const protocol::Measure& measure);
  void Close() { check_.reset(); }

 private:
  asio::io_context& loop_;
  std::function<void(protocol::Event)> answer_;
  std::optional<network::ConnectivityCheck> check_;
};

}  // namespace dtrun::node
