// A TCP port kept for a rank of the job: bound, never listening.
//
// While it is held, a socket of the rank with SO_REUSEADDR may bind and listen on it. A socket without
// SO_REUSEADDR may not, and the kernel does not hand the port out as a free one. An unrelated program that
// uses SO_REUSEADDR and wants this port can still listen there first. Closed on exec and with the object. Any
// thread.
#pragma once

#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

class HeldPort {
 public:
  // `wanted` 0: any free port. If a wanted port is in use, the error names the process that uses it, if
  // visible.
  static Result<HeldPort> Hold(int wanted);

  int number() const { return number_; }
  int descriptor() const { return socket_.get(); }
  // Another socket with this port number, at a numeric address of this host. It may listen while the port is
  // held.
  Result<UniqueFd> At(const std::string& address) const;
  // Hands the socket over to a listener.
  UniqueFd Release() { return std::move(socket_); }

 private:
  HeldPort(UniqueFd socket, int number) : socket_(std::move(socket)), number_(number) {}
  UniqueFd socket_;
  int number_ = 0;
};

}  // namespace dtrun::process
