// Answers users who ask about the running job, over a socket in its run folder.
//
// Owned by the root; loop thread. Only processes of the job's user, and root, get an answer. A client that is
// slow or sends garbage is disconnected after a few seconds and delays nothing.
#pragma once

#include <functional>
#include <memory>

#include "core/base/asio.h"
#include "core/base/result.h"
#include "core/control/messages.h"

namespace dtrun::control {

class Server {
 public:
  using Reply = std::function<void(Answer answer)>;
  // Calls `reply` once, now or later from the loop; a call after the server is gone does nothing.
  using Handler = std::function<void(const Question& question, Reply reply)>;

  // Listens in the open run folder `folder`; replaces a socket of an earlier run. Fails if the file system
  // has no sockets.
  static Result<std::unique_ptr<Server>> Open(asio::io_context& loop, int folder, Handler handler);
  // Removes the socket.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  class Client;
  struct State;

  Server(asio::io_context& loop, int folder, Handler handler);
  void Accept();

  const int folder_;
  std::shared_ptr<State> state_;
};

}  // namespace dtrun::control
