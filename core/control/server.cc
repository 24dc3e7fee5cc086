#include "core/control/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "core/base/fd.h"
#include "core/base/json.h"
#include "core/base/timer.h"
#include "core/control/address.h"
#include "core/wire/json.h"

namespace dtrun::control {
namespace {

using Local = asio::local::stream_protocol;

constexpr int kMostClients = 32;
constexpr std::size_t kLongestQuestion = std::size_t{1} << 20;
constexpr std::chrono::seconds kQuestionPatience{5}, kAnswerPatience{30};

bool MayAsk(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

Answer Refusal(std::string why) {
  Answer answer;
  answer.dtrun = DTRUN_VERSION;
  answer.error = std::move(why);
  return answer;
}

// The version decides before anything else, so that it may change everything else.
Result<Question> Read(const std::string& line) {
  const Json json = ParseJson(line);
  const int version = json.is_object() && json.contains("version") && json["version"].is_number_integer()
                          ? json["version"].get<int>()
                          : 0;
  if (version != kVersion)
    return Error::Of(DTRUN_UNSUPPORTED,
                     "the job runs dtrun {}, which answers questions of version {}, not {}; use the "
                     "dtrun that started it",
                     DTRUN_VERSION, kVersion, version);
  return wire::FromJson<Question>(json, "question");
}

}  // namespace

struct Server::State {
  State(asio::io_context& to, Handler handle) : loop(to), acceptor(to), handler(std::move(handle)) {}

  asio::io_context& loop;
  Local::acceptor acceptor;
  Handler handler;  // empty: the server is gone
  int clients = 0;
};

class Server::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(std::shared_ptr<State> state, Local::socket socket)
      : state_(std::move(state)), socket_(std::move(socket)), patience_(state_->loop) {
    ++state_->clients;
  }
  ~Client() { --state_->clients; }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Start() {
    Limit(kQuestionPatience);
    asio::async_read_until(socket_, asio::dynamic_buffer(text_, kLongestQuestion), '\n',
                           [self = shared_from_this()](const error_code& error, std::size_t length) {
                             self->patience_.Cancel();
                             if (!error && self->state_->handler) self->Ask(self->text_.substr(0, length));
                           });
  }

 private:
  void Ask(const std::string& line) {
    const Result<Question> question = Read(line);
    if (!question) return Send(Refusal(question.error().text), false);
    state_->handler(*question, [self = shared_from_this(), stays = question->what == What::kStop](
                                   Answer answer) { self->Send(std::move(answer), stays); });
  }

  // `stays`: the connection stays open until the client or this process closes it.
  void Send(Answer answer, bool stays) {
    answer.dtrun = DTRUN_VERSION;
    text_ = JsonLine(wire::ToJson(answer)) + '\n';
    Limit(kAnswerPatience);
    asio::async_write(socket_, asio::buffer(text_),
                      [self = shared_from_this(), stays](const error_code& error, std::size_t) {
                        self->patience_.Cancel();
                        if (!error && stays)
                          self->socket_.async_wait(Local::socket::wait_read, [self](const error_code&) {});
                      });
  }

  void Limit(std::chrono::seconds time) {
    patience_.After(time, [self = shared_from_this()] {
      error_code none;
      self->socket_.close(none);
    });
  }

  const std::shared_ptr<State> state_;
  Local::socket socket_;
  Timer patience_;
  std::string text_;
};

Server::Server(asio::io_context& loop, int folder, Handler handler)
    : folder_(folder), state_(std::make_shared<State>(loop, std::move(handler))) {}

Server::~Server() {
  state_->handler = {};
  error_code none;
  state_->acceptor.close(none);
  ::unlinkat(folder_, kSocket, 0);
}

Result<std::unique_ptr<Server>> Server::Open(asio::io_context& loop, int folder, Handler handler) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::System("make the control socket", errno);
  ::unlinkat(folder, kSocket, 0);
  const sockaddr_un address = AddressIn(folder);
  // The mode is set before a client can connect: listen follows.
  const bool made = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::fchmodat(folder, kSocket, S_IRUSR | S_IWUSR, 0) == 0 &&
                    ::listen(socket.get(), kMostClients) == 0;
  if (!made) return Error::System("make the control socket in the run folder", errno);
  std::unique_ptr<Server> server(new Server(loop, folder, std::move(handler)));
  error_code wrong;
  server->state_->acceptor.assign(Local(), socket.Release(), wrong);
  if (wrong) return Error::System("make the control socket", wrong.value());
  server->Accept();
  return server;
}

void Server::Accept() {
  state_->acceptor.async_accept([this, state = state_](const error_code& error, Local::socket socket) {
    if (!state->handler || error == asio::error::operation_aborted) return;
    if (!error && state->clients < kMostClients && MayAsk(socket.native_handle()))
      std::make_shared<Client>(state, std::move(socket))->Start();
    Accept();
  });
}

}  // namespace dtrun::control
