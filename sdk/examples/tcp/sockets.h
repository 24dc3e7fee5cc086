// sockets.h - IPv4 connections between the ranks of a communicator, with blocking sockets.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "dtrun/plugin/membership.hpp"

namespace tcp {

namespace sdk = dtrun::sdk;

// Owns a descriptor. One thread may send while another receives and a third shuts it.
struct Socket {
  explicit Socket(int descriptor = -1) : fd(descriptor) {}
  Socket(Socket&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Socket& operator=(Socket&& other) noexcept { return std::swap(fd, other.fd), *this; }
  ~Socket() { fd < 0 ? 0 : ::close(fd); }

  // False when the connection has ended, or its time limit was reached. `moved` counts pieces of up to 1 MiB.
  bool Send(const void* data, std::size_t bytes, std::atomic<std::uint64_t>* moved = nullptr) const {
    auto* next = static_cast<const char*>(data);
    for (ssize_t sent = 0; bytes > 0; next += sent, bytes -= static_cast<std::size_t>(sent)) {
      if ((sent = ::send(fd, next, std::min<std::size_t>(bytes, 1 << 20), MSG_NOSIGNAL)) <= 0) return false;
      if (moved != nullptr) ++*moved;
    }
    return true;
  }
  bool Recv(void* data, std::size_t bytes) const {
    auto* next = static_cast<char*>(data);
    for (ssize_t got = 0; bytes > 0; next += got, bytes -= static_cast<std::size_t>(got)) {
      if ((got = ::recv(fd, next, bytes, 0)) <= 0) return false;
    }
    return true;
  }
  // How long one call may take; kNoLimit: for ever.
  void Limit(sdk::Nanoseconds time) const {
    const auto us = time.count() < 0 ? 0 : std::max<std::int64_t>(1000, time.count() / 1000);
    const timeval value{us / 1'000'000, us % 1'000'000};
    for (const int way : {SO_RCVTIMEO, SO_SNDTIMEO}) ::setsockopt(fd, SOL_SOCKET, way, &value, sizeof value);
  }

  int fd;
};

inline sdk::Failure SystemFailure(dtrun_status code, const std::string& what, int peer = -1) {
  return sdk::Failure(code, what + ": " + std::strerror(errno), peer).Vendor("errno", errno);
}

inline Socket NewSocket() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // also for what it accepts
  ::setsockopt(socket.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

// Where a rank listens and its secret, as it publishes them. Who connects sends this back with its own rank.
struct Place {
  sockaddr_in address{};
  std::uint64_t secret = 0;
  std::int64_t rank = 0;
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&address); }
};

// A connection with each other rank, by rank; each connects to those below it.
inline std::vector<Socket> ConnectAll(const sdk::Membership& members, const std::string& address,
                                      const sdk::Deadline& deadline) {
  Place own;
  own.rank = members.rank();
  std::random_device random;
  own.secret = std::uint64_t{random()} << 32 | random();
  own.address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), &own.address.sin_addr) != 1) {
    throw sdk::Failure(DTRUN_UNSUPPORTED, "'" + address + "' is no IPv4 address; set network.interface");
  }
  const Socket listener = NewSocket();
  socklen_t size = sizeof own.address;
  if (::bind(listener.fd, own.raw(), size) != 0 || ::listen(listener.fd, members.size()) != 0) {
    throw SystemFailure(DTRUN_SYSTEM, "cannot listen on " + address);
  }
  ::getsockname(listener.fd, own.raw(), &size);

  // A rank listens before it joins, so no rank connects too early.
  const auto said = members.Exchange("tcp", {reinterpret_cast<const char*>(&own), sizeof own}, deadline);
  std::vector<Socket> sockets(said.size());
  for (int peer = 0; peer < own.rank; ++peer) {
    Place place;
    std::memcpy(static_cast<void*>(&place), said[peer].data(), sizeof place);
    place.rank = own.rank;
    Socket& socket = sockets[peer] = NewSocket();
    socket.Limit(deadline.Left());
    if (::connect(socket.fd, place.raw(), size) != 0) {
      throw SystemFailure(DTRUN_REMOTE_FAILURE, "cannot connect to " + sdk::RanksText({peer}), peer);
    }
    socket.Send(&place, sizeof place);  // a peer that is gone is found at the first message
  }
  for (int missing = members.size() - 1 - own.rank; missing > 0;) {
    listener.Limit(deadline.Left());
    Socket socket(::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.fd < 0) {
      int absent = own.rank + 1;
      while (sockets[absent].fd >= 0) ++absent;
      throw SystemFailure(DTRUN_TIMEOUT, sdk::RanksText({absent}) + " has not connected", absent);
    }
    socket.Limit(std::chrono::seconds(2));
    Place place;  // a stranger does not know the secret
    if (!socket.Recv(&place, sizeof place) || place.secret != own.secret) continue;
    sockets.at(place.rank) = std::move(socket);
    --missing;
  }
  for (const Socket& socket : sockets) socket.Limit(sdk::kNoLimit);
  return sockets;
}

}  // namespace tcp
