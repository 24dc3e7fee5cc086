#include "core/store/server.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "core/store/session.h"

namespace dtrun::store {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::local::stream_protocol;

// Accepts while it lives; shared with its pending accept.
class Door : public std::enable_shared_from_this<Door> {
 public:
  Door(asio::io_context& loop, std::shared_ptr<Shared> shared)
      : acceptor_(loop), pause_(loop), shared_(std::move(shared)) {}

  Protocol::acceptor& acceptor() { return acceptor_; }

  void Accept() {
    acceptor_.async_accept([self = shared_from_this()](const error_code& error, Protocol::socket socket) {
      if (!self->acceptor_.is_open()) return;
      if (error) return self->Pause();
      std::make_shared<Session>(std::move(socket), self->shared_)->Start();
      self->Accept();
    });
  }

  void Close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

 private:
  // Out of descriptors, most likely: give clients time to leave instead of spinning.
  void Pause() {
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->acceptor_.is_open()) self->Accept();
    });
  }

  Protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  std::shared_ptr<Shared> shared_;
};

class UnixServer final : public Server {
 public:
  UnixServer(std::filesystem::path socket, std::shared_ptr<Shared> shared, std::shared_ptr<Door> door)
      : socket_(std::move(socket)), shared_(std::move(shared)), door_(std::move(door)) {}

  ~UnixServer() override {
    door_->Close();
    while (!shared_->sessions.empty()) (*shared_->sessions.begin())->Close();
    ::unlink(socket_.c_str());
  }

 private:
  std::filesystem::path socket_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Door> door_;
};

Status CheckPlace(const std::filesystem::path& socket) {
  constexpr std::size_t kLimit = sizeof(sockaddr_un::sun_path) - 1;
  if (socket.native().size() > kLimit) {
    return Error{
        DTRUN_INVALID_ARGUMENT,
        fmt::format("the store's socket '{}' has a path of {} bytes, the system allows {}; set TMPDIR to "
                    "a folder with a shorter name",
                    socket.native(), socket.native().size(), kLimit)};
  }
  const std::filesystem::path folder = socket.parent_path();
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    return Error::System(fmt::format("open the folder of the store's socket '{}'", folder.native()), errno);
  }
  if ((info.st_mode & 0077) != 0) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("the folder '{}' of the store's socket has mode {:04o}, so others could reach it; "
                    "make it 0700",
                    folder.native(), info.st_mode & 07777)};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Listen(asio::io_context& loop, const std::filesystem::path& socket,
                                               std::string job_key, std::uint64_t generation, Events events) {
  if (Status place = CheckPlace(socket); !place) return std::move(place).error();
  auto shared = std::make_shared<Shared>();
  shared->job_key = std::move(job_key);
  shared->generation = generation;
  shared->events = std::move(events);
  auto door = std::make_shared<Door>(loop, shared);

  const auto failed = [&](const error_code& error) {
    return Error::System(fmt::format("listen on the store's socket '{}'", socket.native()), error.value());
  };
  error_code error;
  Protocol::acceptor& acceptor = door->acceptor();
  if (acceptor.open(Protocol(), error); error) return failed(error);
  if (acceptor.bind(Protocol::endpoint(socket.native()), error); error) return failed(error);
  auto server = std::make_unique<UnixServer>(socket, shared, door);  // from here on removes the socket
  if (::chmod(socket.c_str(), 0600) != 0) return failed(error_code(errno, boost::system::system_category()));
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) return failed(error);
  door->Accept();
  return std::unique_ptr<Server>(std::move(server));
}

std::string NewJobKey() {
  unsigned char bytes[32];
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes, sizeof bytes, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof bytes) {  // small reads are whole; without the call there is no secret to be had
    std::perror("dtrun: getrandom");
    std::abort();
  }
  std::string key;
  for (const unsigned char byte : bytes) key += fmt::format("{:02x}", byte);
  return key;
}

}  // namespace dtrun::store
