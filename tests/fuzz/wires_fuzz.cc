// What stands in single lines, records and texts of others: a process that holds a plugin, what started a
// rank under mpirun, a root that request an agent, an agent that answers requests, MPI's words for its
// launcher. Nothing crashes, and what is read is written and read the same.
//
// The first byte chooses the reader, the rest is what it reads.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/port_user.h"
#include "core/binding/topology.h"
#include "core/plugin/probe_messages.h"
#include "core/pmi/open_mpi_message.h"
#include "core/process/rank_fifo.h"
#include "core/protocol/hello.h"
#include "core/protocol/messages.h"
#include "tests/fuzz/target.h"

namespace wires_fuzz {

using namespace dtrun;

void Require(bool holds) {
  if (!holds) std::abort();
}

template <class Read, class Write>
void Same(const std::string& text, const Read& read, const Write& write) {
  const auto first = read(text);
  if (!first) return;
  const std::string written = write(*first);
  const auto second = read(written);
  Require(second.ok() && write(*second) == written);
}

void Read(std::uint8_t reader, const std::string& text) {
  const auto payload = [](const auto& message) { return plugin::Encode(message).substr(4); };
  const auto message = [](const auto& one) { return protocol::Encode(one); };
  switch (reader % 9) {
    case 0:
    case 1: return Same(text, plugin::DecodeAnswer, payload);
    case 2: return Same(text, plugin::DecodeRequest, payload);
    case 3: return Same(text, protocol::DecodeToAgent, message);
    case 4: return Same(text, protocol::DecodeToRoot, message);
    case 5: {
      if (const auto topology = binding::ParseTopology(text))
        Require(*binding::ParseTopology(binding::ToText(*topology)) == *topology);
      return;
    }
    case 6: (void)protocol::ParseJoinRequest(text); return;
    case 7: (void)process::ReadEnd(text); return;
    default: Require(pmi::OpenMpiMessage(text).size() <= text.size()); (void)ParseTcpSockets(text);
  }
}

DTRUN_FUZZ_TARGET(wires)(const std::uint8_t* data, std::size_t size) {
  if (size > 0) Read(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}

}  // namespace wires_fuzz
