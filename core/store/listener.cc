#include "core/store/listener.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>

#include "core/store/connection.h"

namespace dtrun::store {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::local::stream_protocol;

// Accepts while it lives; its pending accept shares ownership.
class LocalAcceptor : public std::enable_shared_from_this<LocalAcceptor> {
 public:
  LocalAcceptor(asio::io_context& loop, std::function<void(Socket)> enter)
      : acceptor_(loop), pause_(loop), enter_(std::move(enter)) {}

  Protocol::acceptor& acceptor() { return acceptor_; }

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](const error_code& error, Protocol::socket socket) {
      if (!self->acceptor_.is_open()) return;
      if (error) return self->Pause();
      self->enter_(std::move(socket));
      self->Accept();
    });
  }

  void Close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

 private:
  // Most likely out of descriptors: let clients leave instead of spinning.
  void Pause() {
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->acceptor_.is_open()) self->Accept();
    });
  }

  Protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  std::function<void(Socket)> enter_;
};

class UnixListener final : public Listener {
 public:
  UnixListener(std::filesystem::path socket, std::shared_ptr<LocalAcceptor> porter,
               std::shared_ptr<LocalAcceptor> abstract)
      : socket_(std::move(socket)), porter_(std::move(porter)), abstract_(std::move(abstract)) {}

  ~UnixListener() override {
    porter_->Close();
    abstract_->Close();
    ::unlink(socket_.c_str());
  }

 private:
  std::filesystem::path socket_;
  std::shared_ptr<LocalAcceptor> porter_, abstract_;
};

Status CheckPlace(const std::filesystem::path& socket) {
  constexpr std::size_t kLimit = sizeof(sockaddr_un::sun_path) - 1;
  if (socket.native().size() > kLimit) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "the store's socket '{}' has a path of {} bytes, the system allows {}; set TMPDIR to "
                     "a folder with a shorter name",
                     socket.native(), socket.native().size(), kLimit);
  }
  const std::filesystem::path folder = socket.parent_path();
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    return Error::System(fmt::format("open the folder of the store's socket '{}'", folder.native()), errno);
  }
  if ((info.st_mode & 0077) != 0) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the folder '{}' of the store's socket has mode {:04o}, so others could reach it; "
                     "make it 0700",
                     folder.native(), info.st_mode & 07777);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Listen(asio::io_context& loop,
                                                   const std::filesystem::path& socket,
                                                   std::function<void(Socket)> enter) {
  if (Status place = CheckPlace(socket); !place) return std::move(place).error();
  auto porter = std::make_shared<LocalAcceptor>(loop, enter);
  auto abstract = std::make_shared<LocalAcceptor>(loop, [enter = std::move(enter)](Socket client) {
    if (IsOfThisUser(client.native_handle())) enter(std::move(client));
  });

  const auto failed = [&](const error_code& error) {
    return Error::System(fmt::format("listen on the store's socket '{}'", socket.native()), error.value());
  };
  error_code error;
  Protocol::acceptor& acceptor = porter->acceptor();
  if (acceptor.open(Protocol(), error); error) return failed(error);
  if (acceptor.bind(Protocol::endpoint(socket.native()), error); error) return failed(error);
  auto listener =
      std::make_unique<UnixListener>(socket, porter, abstract);  // removes the socket from here on
  if (::chmod(socket.c_str(), 0600) != 0) return failed(error_code(errno, boost::system::system_category()));
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) return failed(error);
  porter->Accept();
  // The path suffices if the name is taken, for example in a shared network namespace.
  Protocol::acceptor& nameless = abstract->acceptor();
  nameless.open(Protocol(), error);
  nameless.bind(Protocol::endpoint(std::string(1, '\0') + socket.native()), error);
  if (!error) nameless.listen(asio::socket_base::max_listen_connections, error);
  if (!error) abstract->Accept();
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace dtrun::store
