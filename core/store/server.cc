#include "core/store/server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "core/store/session.h"

namespace dtrun::store {

Server::Server(std::string job_key, std::uint64_t generation, Events events)
    : shared_(std::make_shared<Shared>()) {
  shared_->job_key = std::move(job_key);
  shared_->generation = generation;
  shared_->events = std::move(events);
}

Server::~Server() {
  while (!shared_->sessions.empty()) (*shared_->sessions.begin())->Close();
}

void Server::Serve(Socket client) { std::make_shared<Session>(std::move(client), shared_)->Start(); }

std::string NewJobKey() {
  unsigned char bytes[32];
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes, sizeof bytes, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof bytes) {  // small reads are complete; without the call there is no secret
    std::perror("dtrun: getrandom");
    std::abort();
  }
  std::string key;
  for (const unsigned char byte : bytes) key += fmt::format("{:02x}", byte);
  return key;
}

}  // namespace dtrun::store
