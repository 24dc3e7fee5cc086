#include "core/agent/audit.h"

#include <chrono>
#include <utility>

namespace dtrun::agent {

Audit::Audit(boost::asio::io_context& loop, comm::BookHead* book, std::function<void(const std::string&)> say)
    : auditor_(book), timer_(loop), say_(std::move(say)) {
  Wait();
}

void Audit::Wait() {
  timer_.expires_after(std::chrono::milliseconds(100));
  timer_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;  // the run is over
    if (const auto finding = auditor_.Audit()) say_("dtrun: " + *finding);
    Wait();
  });
}

}  // namespace dtrun::agent
