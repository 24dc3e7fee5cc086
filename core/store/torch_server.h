// Serves a TorchTable by TCP, as torchrun's agent serves its TCPStore.
//
// torch's client shows no key, so whoever reaches the port can read and write, as with torchrun; within a
// host, other users can be kept out. What clients can make the server keep is limited: how many there are,
// the bytes of their requests, replies and values. Lives on the agent's event loop; its thread only.
#pragma once

// Before Asio, because Boost 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio/io_context.hpp>
// clang-format on

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::store {

class TorchServer {
 public:
  struct Options {
    // One more pushes out the oldest that has not asked for anything yet, of the address that has most of
    // those; so does one for whom no descriptor is left. Where all have asked, it is turned away.
    std::size_t max_clients = 4096;
    // Whether processes of that user may come, where the kernel tells whose they are; empty: all may.
    // REQUIRES, unless empty: it listens on loopback.
    std::function<bool(uid_t user)> admits;
    // For the user, once a second at most: "MASTER_PORT 1234: dropped 10.0.0.7:5555: ...". May be empty.
    std::function<void(const std::string& line)> said;
  };

  // Listens on `bound`, TCP sockets that have their port already, the same one.
  static Result<std::unique_ptr<TorchServer>> Serve(boost::asio::io_context& loop,
                                                    std::vector<UniqueFd> bound, Options options);
  virtual ~TorchServer() = default;  // closes every connection
};

}  // namespace dtrun::store
