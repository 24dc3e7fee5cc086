#include "core/protocol/resolve.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/eventfd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "core/base/fd.h"
#include "core/base/thread.h"

namespace dtrun::protocol {
namespace {

Addresses LookUp(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (problem != 0) {
    const char* text = problem == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(problem);
    return Error::Of(DTRUN_NOT_FOUND, "'{}' does not resolve: {}", name, text);
  }
  std::vector<asio::ip::address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    addresses.push_back(endpoint.address());
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) return Error::Of(DTRUN_NOT_FOUND, "'{}' has no IP address", name);
  return addresses;
}

// State shared by the thread and the loop; the last one frees it.
struct Resolved {
  std::mutex mutex;
  std::optional<Addresses> addresses;
  UniqueFd ready;  // eventfd
};

// The loop's side; destroyed with the handle.
class Lookup : public std::enable_shared_from_this<Lookup> {
 public:
  Lookup(asio::io_context& loop, std::function<void(Addresses)> done)
      : loop_(loop), ready_(loop), done_(std::move(done)) {}

  void Start(const std::string& name) {
    error_code not_numeric;
    const auto address = asio::ip::make_address(name, not_numeric);
    if (!not_numeric) return Later(std::vector{address});
    auto answer = std::make_shared<Resolved>();
    answer->ready = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const int ours = answer->ready ? ::fcntl(answer->ready.get(), F_DUPFD_CLOEXEC, 0) : -1;
    if (ours < 0) return Later(Error::System(fmt::format("look '{}' up", name), errno));
    ready_.assign(ours);
    try {
      StartThread("dtrun-resolve", [answer, name] {
        Addresses addresses = LookUp(name);
        const std::lock_guard lock(answer->mutex);
        answer->addresses = std::move(addresses);
        ::eventfd_write(answer->ready.get(), 1);
      }).detach();
    } catch (const std::system_error& error) {
      return Later(Error::System(fmt::format("start a thread to look '{}' up", name), error.code().value()));
    }
    ready_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this(), answer](const error_code& error) {
                        if (error) return;
                        const std::lock_guard lock(answer->mutex);
                        self->Finish(*std::move(answer->addresses));
                      });
  }

  void Cancel() {
    done_ = nullptr;
    error_code ignored;  // a failed close still closes
    ready_.close(ignored);
  }

 private:
  void Later(Addresses addresses) {
    asio::post(loop_, [self = shared_from_this(), addresses = std::move(addresses)]() mutable {
      self->Finish(std::move(addresses));
    });
  }
  void Finish(Addresses addresses) {
    if (auto done = std::exchange(done_, nullptr)) done(std::move(addresses));
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor ready_;
  std::function<void(Addresses)> done_;
};

}  // namespace

std::shared_ptr<void> ResolveBySystem(asio::io_context& loop, const std::string& name,
                                      std::function<void(Addresses)> done) {
  auto lookup = std::make_shared<Lookup>(loop, std::move(done));
  lookup->Start(name);
  return {nullptr, [lookup](void*) { lookup->Cancel(); }};
}

}  // namespace dtrun::protocol
