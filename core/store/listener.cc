#include "core/store/listener.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "core/store/connection.h"

namespace dtrun::store {
namespace {

using Protocol = asio::local::stream_protocol;

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

Listener::~Listener() {
  for (const auto& acceptor : acceptors_) acceptor->Close();
  ::unlink(socket_.c_str());
}

Result<std::unique_ptr<Listener>> Listener::Listen(asio::io_context& loop,
                                                   const std::filesystem::path& socket,
                                                   std::function<void(Socket)> enter) {
  if (Status place = CheckPlace(socket); !place) return std::move(place).error();
  const auto named = std::make_shared<LocalAcceptor>(loop, [enter](const error_code& error, Socket client) {
    if (!error) enter(std::move(client));
    return !error;
  });
  const auto abstract =
      std::make_shared<LocalAcceptor>(loop, [enter](const error_code& error, Socket client) {
        if (!error && IsOfThisUser(client.native_handle())) enter(std::move(client));
        return !error;
      });

  const auto failed = [&](const error_code& error) {
    return Error::System(fmt::format("listen on the store's socket '{}'", socket.native()), error.value());
  };
  error_code error;
  Protocol::acceptor& acceptor = named->socket;
  if (acceptor.open(Protocol(), error); error) return failed(error);
  if (acceptor.bind(Protocol::endpoint(socket.native()), error); error) return failed(error);
  std::unique_ptr<Listener> listener(new Listener(socket, {named, abstract}));  // removes it from here on
  if (::chmod(socket.c_str(), 0600) != 0) return failed(error_code(errno, boost::system::system_category()));
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) return failed(error);
  named->Accept();
  // The path suffices if the name is taken, for example in a shared network namespace.
  Protocol::acceptor& nameless = abstract->socket;
  nameless.open(Protocol(), error);
  nameless.bind(Protocol::endpoint(std::string(1, '\0') + socket.native()), error);
  if (!error) nameless.listen(asio::socket_base::max_listen_connections, error);
  if (!error) abstract->Accept();
  return listener;
}

}  // namespace dtrun::store
