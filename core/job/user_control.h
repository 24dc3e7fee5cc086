// Lets the user see and end the running job from another terminal: answers what comes through the control
// socket (core/control).
//
// Owned by the root's runner; loop thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/control/server.h"
#include "core/job/controller.h"
#include "core/process/user_signals.h"

namespace dtrun::job {

class UserControl {
 public:
  // `begun`: when the job began. `signals` must outlive it.
  UserControl(std::string job, std::chrono::steady_clock::time_point begun, process::UserSignals& signals)
      : job_(std::move(job)), begun_(begun), signals_(signals) {}

  // Fails if the file system of the open run folder has no sockets; the job is then ended by signals alone.
  Status Open(asio::io_context& loop, int run_folder);

  // `joining`: while the job waits for hosts, which are missing and why; otherwise empty.
  void WhileHostsJoin(std::function<std::string()> joining) { joining_ = std::move(joining); }

  // The job at this moment, without places.
  control::Answer Now();

  // Looks where the ranks are and tells it, as `dtrun stacks` does. `tell` is called from here or from the
  // loop.
  void ShowStacks(std::function<void(const std::string& text)> tell);

  // While this object lives, `controller` answers for the ranks.
  class Shows {
   public:
    Shows(UserControl& control, Controller& controller) : control_(control) {
      control_.controller_ = &controller;
    }
    ~Shows() { control_.controller_ = nullptr; }
    Shows(const Shows&) = delete;
    Shows& operator=(const Shows&) = delete;

   private:
    UserControl& control_;
  };

 private:
  control::Answer Start() const;
  void Answer(const control::Question& question, control::Server::Reply reply);

  const std::string job_;
  const std::chrono::steady_clock::time_point begun_;
  process::UserSignals& signals_;
  std::function<std::string()> joining_;
  Controller* controller_ = nullptr;
  std::unique_ptr<control::Server> server_;
};

}  // namespace dtrun::job
