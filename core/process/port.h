// A TCP port kept for a rank of the job: bound, never listening.
//
// While held, the rank's own socket with SO_REUSEADDR may bind and listen on it, nothing
// without SO_REUSEADDR may, and the kernel gives it to nobody who asks for any port. A stranger's
// program with SO_REUSEADDR that wants this port can listen there first, all the same. Closes
// on exec and with the object. Any thread.
#pragma once

#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::process {

class HeldPort {
 public:
  // `wanted` 0: any free port. A wanted port in use is an error that names who uses it,
  // where that can be seen.
  static Result<HeldPort> Hold(int wanted);

  int number() const { return number_; }
  int descriptor() const { return socket_.get(); }
  // Another socket of that number, at a numeric address of this host, that may listen while the port is held.
  Result<UniqueFd> At(const std::string& address) const;
  // The socket, for whoever listens on it.
  UniqueFd Release() { return std::move(socket_); }

 private:
  HeldPort(UniqueFd socket, int number) : socket_(std::move(socket)), number_(number) {}
  UniqueFd socket_;
  int number_ = 0;
};

}  // namespace dtrun::process
