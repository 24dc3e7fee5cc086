#include "core/job/user_control.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "core/control/stacks_text.h"

namespace dtrun::job {

Status UserControl::Open(asio::io_context& loop, int run_folder) {
  auto server = control::Server::Open(
      loop, run_folder, [this](const control::Question& question, control::Server::Reply reply) {
        Answer(question, std::move(reply));
      });
  if (!server) return server.error();
  server_ = *std::move(server);
  return {};
}

control::Answer UserControl::Start() const {
  control::Answer answer;
  answer.job = job_;
  answer.state = "starting";
  if (joining_) answer.joining = joining_();
  answer.age = std::chrono::steady_clock::now() - begun_;
  return answer;
}

control::Answer UserControl::Now() {
  control::Answer now = Start();
  // The controller replies to this question at once.
  if (controller_ != nullptr)
    controller_->Answer({}, now, [&now](control::Answer answer) { now = std::move(answer); });
  return now;
}

void UserControl::ShowStacks(std::function<void(const std::string& text)> tell) {
  Answer({.what = control::What::kPlaces, .recorders = true},
         [tell = std::move(tell)](const control::Answer& answer) {
           const std::string stacks = control::StacksText(answer, false);
           tell(stacks.empty() ? fmt::format("dtrun: no rank has stacks at this moment: the job is {}",
                                             answer.StateText())
                               : "dtrun: where the ranks are:\n" + stacks);
         });
}

void UserControl::Answer(const control::Question& question, control::Server::Reply reply) {
  control::Answer answer = Start();
  if (question.what == control::What::kStop) {
    if (question.grace && controller_ != nullptr) controller_->SetGrace(*question.grace);
    answer.state = "ending";
    reply(std::move(answer));
    return signals_.Deliver(SIGTERM);
  }
  controller_ == nullptr ? reply(std::move(answer))
                         : controller_->Answer(question, std::move(answer), std::move(reply));
}

}  // namespace dtrun::job
