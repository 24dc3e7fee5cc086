#include "core/membership/host_preflight.h"

#include <csignal>
#include <utility>

#include "core/process/process.h"

namespace dtrun::membership {

HostPreflight::~HostPreflight() {
  if (here_.joinable()) here_.join();
}

Result<std::vector<preflight::Answer>> HostPreflight::Run(const std::vector<preflight::Request>& requests,
                                                          const std::vector<RemoteHost*>& hosts) {
  answers_.assign(hosts.size(), std::nullopt);
  missing_ = hosts.size();
  signals_.NoteEndIn(&interrupted_);
  auto work = asio::make_work_guard(loop_);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] != nullptr) {
      hosts[i]->RunPreflight(requests[i],
                             [this, i](Result<preflight::Answer> answer) { Take(i, std::move(answer)); });
      continue;
    }
    here_ = std::thread([this, i, request = requests[i]] {
      asio::post(loop_, [this, i, answer = preflight::RunPreflight(request)] { Take(i, answer); });
    });
  }
  while (missing_ > 0 && !failure_ && interrupted_ == 0) loop_.run_one();
  signals_.Handle({});
  for (RemoteHost* host : hosts) {
    if (host != nullptr) host->ForgetPreflight();
  }
  if (here_.joinable()) {
    here_.join();
    loop_.poll();  // its answer refers to this object
  }
  for (RemoteHost* host : hosts) {
    if (host != nullptr && host->lost() && !failure_)
      failure_ = Error{DTRUN_REMOTE_FAILURE, "a host was lost while dtrun checked it"};
  }
  if (failure_) return *failure_;
  if (interrupted_ != 0) return Error{DTRUN_ABORTED, "the job was ended while dtrun checked its hosts"};
  std::vector<preflight::Answer> answers;
  for (std::optional<preflight::Answer>& answer : answers_) answers.push_back(*std::move(answer));
  return answers;
}

void HostPreflight::Take(std::size_t host, Result<preflight::Answer> answer) {
  if (answers_[host] || failure_) return;
  if (!answer) {
    failure_ = std::move(answer).error();
    return;
  }
  answers_[host] = *std::move(answer);
  --missing_;
}

}  // namespace dtrun::membership
