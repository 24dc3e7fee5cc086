#include "core/protocol/messages.h"

#include <fmt/format.h>

#include "core/base/visit.h"
#include "core/protocol/message_fields.h"
#include "core/protocol/network_fields.h"

namespace dtrun::protocol {
namespace fields {

// A message with raw bytes has them after its fields.
template <class C>
void Fields(C& c, Of<C, plan::Process>& m) {
  c.Number(m.host);
  c.Number(m.rank);
  c.Number(m.local_rank);
  c.Number(m.rank_count);
  c.Texts(m.argv, kMostEntries, kAny);
  std::map<std::string, std::string> env;
  if constexpr (C::kWrites) env.insert(m.env.begin(), m.env.end());
  c.Pairs(env, kMostEntries, kAny);
  if constexpr (!C::kWrites) m.env = std::move(env);
  c.Texts(m.unset, kMostEntries, kAny);
  c.Text(m.cwd, kMostName);
  c.Text(m.binding, kAny);
}
template <class C>
void Fields(C& c, Of<C, pmi::Job>& m) {
  Choice(c, m.kind, pmi::Kind::kNone, pmi::Kind::kPmi1);
  c.Text(m.name, kMostName);
  List(c, m.hosts, kMostHosts, [&](auto& host) {
    c.Text(host.name, kMostName);
    c.Number(host.first_rank);
    c.Number(host.local_size);
  });
  c.Number(m.here);
}
template <class C>
void Fields(C& c, Of<C, Prepare>& m) {
  c.Number(m.generation);
  c.Number(m.world_size);
  c.Text(m.job_key, kMostName);
  c.Number(m.master_port);
  List(c, m.task_ranks, kMostEntries, [&](auto& rank) { c.Number(rank); });
  List(c, m.processes, kMostProcesses, [&](auto& process) { Fields<C>(c, process); });
  c.Texts(m.environment, kMostEntries, kAny);
  Duration<C>(c, m.grace);
  c.Number(m.memory);
  Fields<C>(c, m.mpi);
}
template <class C>
void Fields(C& c, Of<C, Start>& m) {
  c.Pairs(m.tokens, kMostEntries, kAny);
  List(c, m.rendezvous_ports, kMostEntries, [&](auto& port) { c.Number(port); });
}
template <class C>
void Fields(C& c, Of<C, Signal>& m) {
  c.Number(m.number);
}
template <class C>
void Fields(C& c, Of<C, Stop>& m) {
  c.Number(m.signal);
}
template <class C>
void Fields(C&, Of<C, Kill>&) {}
template <class C>
void Fields(C& c, Of<C, Inspect>& m) {
  c.Number(m.number);
  List(c, m.closely, kMostProcesses, [&](auto& rank) { c.Number(rank); });
}
template <class C>
void Fields(C& c, Of<C, verdict::Override>& m) {
  c.Number(m.rank);
  c.Text(m.name, kMostName);
  c.Text(m.given, kAny);
  c.Text(m.now, kAny);
}
template <class C>
void Fields(C& c, Of<C, verdict::RankDoing>& m) {
  c.Number(m.rank);
  Choice(c, m.stand, stacks::Stand::kUnknown, stacks::Stand::kElsewhere);
  c.Flag(m.joins);
  c.Flag(m.may_handle);
  c.Text(m.phrase, kAny);
  c.Text(m.beside, kAny);
  c.Text(m.text, kAny);
  c.Number(m.processor_ms);
  c.Number(m.bytes);
  c.Number(m.waits_for);
  List(c, m.overrides, kMostEntries, [&](auto& one) { Fields<C>(c, one); });
}
template <class C>
void Fields(C& c, Of<C, Inspected>& m) {
  c.Number(m.number);
  List(c, m.ranks, kMostProcesses, [&](auto& one) { Fields<C>(c, one); });
  c.Number(m.calls);
}
template <class C>
void Fields(C& c, Of<C, Exchanged>& m) {
  c.Text(m.exchange, kAny);
  c.Text(m.error, kAny);
  c.Text(m.bytes, kAny);
}
template <class C>
void Fields(C& c, Of<C, Over>& m) {
  c.Number(m.exit_code);
  c.Text(m.why, kAny);
}
template <class C>
void Fields(C& c, Of<C, RunPreflight>& m) {
  c.Text(m.request, kAny);
  c.Texts(m.environment, kMostEntries, kAny);
}
template <class C>
void Fields(C& c, Of<C, PreflightAnswered>& m) {
  c.Text(m.answer, kAny);
}
template <class C>
void Fields(C& c, Of<C, ClientOpened>& m) {
  c.Number(m.client);
}
template <class C>
void Fields(C& c, Of<C, ClientData>& m) {
  c.Number(m.client);
}
template <class C>
void Fields(C& c, Of<C, ClientClosed>& m) {
  c.Number(m.client);
}
template <class C>
void Fields(C& c, Of<C, Introduction>& m) {
  c.Text(m.host_name, kMostName);
  c.Text(m.machine, kMostName);
  c.Text(m.processors, kAny);
  Choice(c, m.gpus.vendor, binding::Vendor::kNvidia, binding::Vendor::kAmd);
  List(c, m.gpus.devices, kMostProcesses, [&](auto& gpu) {
    c.Text(gpu.uuid, kMostName);
    c.Number(gpu.numa);
    c.Text(gpu.name, kMostName);
  });
}
template <class C>
void Fields(C& c, Of<C, Prepared>& m) {
  c.Number(m.master_port);
  List(c, m.task_ports, kMostEntries, [&](auto& task) {
    c.Number(task.first);
    c.Number(task.second);
  });
  c.Text(m.store, kMostName);
  c.Text(m.recorder, kMostName);
}
template <class C>
void Fields(C& c, Of<C, Refused>& m) {
  Choice(c, m.error.code, DTRUN_INVALID_ARGUMENT, DTRUN_INTERNAL);
  c.Text(m.error.text, kAny);
}
template <class C>
void Fields(C& c, Of<C, Started>& m) {
  List(c, m.pids, kMostEntries, [&](auto& pid) { c.Number(pid); });
}
template <class C>
void Fields(C& c, Of<C, Output>& m) {
  c.Number(m.rank);
  Choice(c, m.stream, output::Stream::kOut, output::Stream::kErr);
}
template <class C>
void Fields(C& c, Of<C, process::Ending>& m) {
  c.Number(m.code);
  c.Number(m.signal);
  c.Flag(m.core_dumped);
  c.Flag(m.out_of_memory);
  c.Number(m.stopped_by);
  c.Flag(m.forwarded);
}
template <class C>
void Fields(C& c, Of<C, Ended>& m) {
  c.Number(m.rank);
  Fields<C>(c, m.ending);
  c.Number(m.signal_sent);
  c.Text(m.under_way.members, kMostName);
  c.Flag(m.under_way.main_thread);
}
template <class C>
void Fields(C& c, Of<C, RankEnded>& m) {
  c.Number(m.rank);
  c.Number(m.pid);
  Fields<C>(c, m.ending);
}
template <class C>
void Fields(C& c, Of<C, Said>& m) {
  c.Text(m.line, kAny);
}
template <class C>
void Fields(C& c, Of<C, Logged>& m) {
  c.Text(m.line, kAny);
}
template <class C>
void Fields(C& c, Of<C, Looked>& m) {
  c.Flag(m.joined);
  c.Texts(m.frameworks, kMostFrameworks, kMostName);
  c.Flag(m.alone);
  c.Flag(m.late);
  List(c, m.overrides, kMostEntries, [&](auto& one) { Fields<C>(c, one); });
}
template <class C>
void Fields(C& c, Of<C, Gone>& m) {
  c.Text(m.calls, kAny);
}
template <class C>
void Fields(C& c, Of<C, Asked>& m) {
  c.Number(m.signal);
}
template <class C>
void Fields(C& c, Of<C, Offered>& m) {
  c.Text(m.part.exchange, kAny);
  List(c, m.part.hosts, kMostHosts, [&](auto& host) { c.Number(host); });
  c.Text(m.part.bytes, kAny);
}
template <class C>
void Fields(C& c, Of<C, MpiStarted>& m) {
  c.Number(m.rank);
}
template <class C>
void Fields(C& c, Of<C, MpiFinished>& m) {
  c.Number(m.rank);
}
template <class C>
void Fields(C& c, Of<C, MpiAborted>& m) {
  c.Number(m.rank);
  c.Number(m.code);
  c.Text(m.message, kAny);
  c.Flag(m.broke);
}
template <class C>
void Fields(C& c, Of<C, MpiServerLost>& m) {
  c.Text(m.how, kAny);
}

template <class C>
void Fields(C& c, Of<C, contract::Window>& m) {
  c.Number(m.communicator);
  c.Text(m.name, kMostName);
  c.Text(m.device, kMostName);
  c.Number(m.size);
  List(c, m.members, kMostEntries, [&](auto& member) {
    c.Number(member.world_rank);
    c.Number(member.rank);
  });
  c.Flag(m.freed);
  bool idle = m.idle.has_value();
  c.Flag(idle);
  if (idle) {
    if constexpr (!C::kWrites) m.idle.emplace();
    c.Number(m.idle->started);
    c.Number(m.idle->ended);
  }
  List(c, m.calls, kMostCalls, [&](auto& seen) {
    c.Number(seen.number);
    c.Number(seen.chain);
    c.Number(seen.call.kind);
    c.Number(seen.call.dtype);
    c.Number(seen.call.reduce);
    c.Number(seen.call.device_kind);
    c.Number(seen.call.root);
    c.Number(seen.call.count);
    c.Number(seen.call.shape);
  });
  List(c, m.checkpoints, kMostCalls, [&](auto& checkpoint) {
    c.Number(checkpoint.first);
    c.Number(checkpoint.second);
  });
  List(c, m.messages, kMostCalls, [&](auto& log) {
    c.Number(log.key);
    c.Number(log.last);
    c.Number(log.first);
  });
}
template <class C>
void Fields(C& c, Of<C, Called>& m) {
  List(c, m.windows, kMostProcesses, [&](auto& window) { Fields<C>(c, window); });
}

template <class C>
void Fields(C& c, Of<C, Differed>& m) {
  c.Number(m.difference.communicator);
  c.Number(m.difference.first);
  c.Number(m.difference.second);
  c.Text(m.difference.text, kAny);
  c.Flag(m.difference.exact);
  c.Flag(m.difference.between_hosts);
}
template <class C>
void Fields(C& c, Of<C, Lost>& m) {
  c.Text(m.why, kAny);
  c.Flag(m.agent_died);
}

}  // namespace fields

namespace {

// Size of the fields before raw bytes.
template <class T>
constexpr std::size_t kBytesAt = 0;
template <>
constexpr std::size_t kBytesAt<Output> = sizeof(Output::rank) + sizeof(Output::stream);
template <>
constexpr std::size_t kBytesAt<ClientData> = sizeof(ClientData::client);

template <class Message>
std::string EncodeAny(const Message& message) {
  Encoder encoder;
  encoder.Number(static_cast<std::uint8_t>(message.index()));
  return Visit(
      [&]<class T>(const T& given) {
        fields::Fields<Encoder>(encoder, given);
        std::string bytes = std::move(encoder).Payload();
        if constexpr (kBytesAt<T> != 0) bytes += given.bytes;
        return bytes;
      },
      message);
}

template <class Message>
Result<Message> DecodeAny(std::string_view bytes) {
  const auto kind = bytes.empty() ? std::variant_size_v<Message> : static_cast<unsigned char>(bytes.front());
  Message message;
  if (!MakeAlternative(kind, message))
    return Error{DTRUN_INTERNAL, fmt::format("unknown message {} between root and agent", kind)};
  bytes.remove_prefix(1);
  const Status whole = Visit(
      [&]<class T>(T& out) {
        if constexpr (kBytesAt<T> != 0) {
          const std::size_t at = std::min(bytes.size(), kBytesAt<T>);
          out.bytes = bytes.substr(at);
          bytes = bytes.substr(0, at);
        }
        Decoder decoder(bytes);
        fields::Fields<Decoder>(decoder, out);
        return decoder.Finish("message between root and agent");
      },
      message);
  if (!whole) return whole.error();
  return message;
}

}  // namespace

std::string Encode(const ToAgent& message) { return EncodeAny(message); }
std::string Encode(const ToRoot& message) { return EncodeAny(message); }

Result<ToAgent> DecodeToAgent(std::string_view bytes) { return DecodeAny<ToAgent>(bytes); }
Result<ToRoot> DecodeToRoot(std::string_view bytes) { return DecodeAny<ToRoot>(bytes); }

}  // namespace dtrun::protocol
