#include "core/agent/messages.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/encoding.h"

namespace dtrun::agent {
namespace {

// The channel bounds whole messages.
constexpr std::size_t kAny = std::numeric_limits<std::uint32_t>::max();

// The fields of every message, once for both directions. A message with raw bytes has them
// behind its fields.
template <class C>
void Duration(C& c, Of<C, std::chrono::nanoseconds>& value) {
  std::int64_t count = value.count();
  c.Number(count);
  if constexpr (!C::kWrites) value = std::chrono::nanoseconds(count);
}

template <class C, class T, class Each>
void List(C& c, T& values, Each each) {
  auto count = static_cast<std::uint32_t>(values.size());
  c.Number(count);
  if constexpr (C::kWrites) {
    for (const auto& value : values) each(value);
  } else {
    for (std::uint32_t i = 0; i < count && c.ok(); ++i) each(values.emplace_back());
  }
}

template <class C>
void Fields(C& c, Of<C, plan::Process>& m) {
  c.Number(m.host);
  c.Number(m.rank);
  c.Number(m.local_rank);
  c.Number(m.rank_count);
  c.Texts(m.argv, kAny, kAny);
  c.Pairs(m.env, kAny, kAny);
  c.Text(m.cwd, kAny);
  c.Text(m.binding, kAny);
}
template <class C>
void Fields(C& c, Of<C, pmi::Job>& m) {
  c.Number(m.kind);
  c.Text(m.name, kAny);
  List(c, m.hosts, [&](auto& host) {
    c.Text(host.name, kAny);
    c.Number(host.first_rank);
    c.Number(host.local_size);
  });
  c.Number(m.here);
}
template <class C>
void Fields(C& c, Of<C, Prepare>& m) {
  c.Number(m.generation);
  c.Number(m.world_size);
  c.Text(m.job_key, kAny);
  c.Number(m.master_port);
  List(c, m.task_ranks, [&](auto& rank) { c.Number(rank); });
  List(c, m.processes, [&](auto& process) { Fields<C>(c, process); });
  c.Texts(m.environment, kAny, kAny);
  Duration<C>(c, m.grace);
  Fields<C>(c, m.mpi);
}
template <class C>
void Fields(C& c, Of<C, Start>& m) {
  c.Pairs(m.tokens, kAny, kAny);
  List(c, m.meeting_ports, [&](auto& port) { c.Number(port); });
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
void Fields(C& c, Of<C, Examine>& m) {
  c.Text(m.question, kAny);
  c.Texts(m.environment, kAny, kAny);
}
template <class C>
void Fields(C& c, Of<C, Examined>& m) {
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
  c.Text(m.host_name, kAny);
  c.Text(m.machine, kAny);
  c.Text(m.processors, kAny);
  c.Number(m.gpus.vendor);
  List(c, m.gpus.devices, [&](auto& gpu) {
    c.Text(gpu.uuid, kAny);
    c.Number(gpu.numa);
    c.Text(gpu.name, kAny);
  });
}
template <class C>
void Fields(C& c, Of<C, Prepared>& m) {
  c.Number(m.master_port);
  List(c, m.task_ports, [&](auto& task) {
    c.Number(task.first);
    c.Number(task.second);
  });
  c.Text(m.store, kAny);
  c.Text(m.recorder, kAny);
}
template <class C>
void Fields(C& c, Of<C, Refused>& m) {
  c.Number(m.error.code);
  c.Text(m.error.text, kAny);
}
template <class C>
void Fields(C& c, Of<C, Started>& m) {
  List(c, m.pids, [&](auto& pid) { c.Number(pid); });
}
template <class C>
void Fields(C& c, Of<C, Output>& m) {
  c.Number(m.rank);
  c.Number(m.stream);
}
template <class C>
void Fields(C& c, Of<C, Ending>& m) {
  c.Number(m.code);
  c.Number(m.signal);
  c.Flag(m.core_dumped);
  c.Flag(m.out_of_memory);
  c.Number(m.stopped_by);
}
template <class C>
void Fields(C& c, Of<C, Ended>& m) {
  c.Number(m.rank);
  Fields<C>(c, m.ending);
  c.Number(m.signal_sent);
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
void Fields(C& c, Of<C, Looked>& m) {
  c.Flag(m.joined);
  c.Texts(m.frameworks, kAny, kAny);
  c.Flag(m.late);
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
  List(c, m.part.hosts, [&](auto& host) { c.Number(host); });
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
}

template <class C>
void Fields(C& c, Of<C, net::Address>& m) {
  std::string text = m.ip.to_string();
  c.Text(text, kAny);
  c.Number(m.prefix);
  if constexpr (!C::kWrites) {
    net::error_code problem;
    m.ip = net::asio::ip::make_address(text, problem);
    if (problem) c.Fail("it has no IP address");
  }
}
template <class C>
void Fields(C& c, Of<C, net::Candidate>& m) {
  c.Text(m.interface, kAny);
  c.Number(m.index);
  c.Number(m.kind);
  Fields<C>(c, m.address);
  c.Flag(m.first_address);
  c.Flag(m.default_route);
  c.Number(m.mtu);
  c.Number(m.speed_mbps);
  c.Text(m.rdma, kAny);
  c.Number(m.port);
}
template <class C>
void Fields(C& c, Of<C, Survey>& m) {
  c.Number(m.host);
  c.Text(m.rule, kAny);
  c.Text(m.proof_key, kAny);
}
template <class C>
void Fields(C& c, Of<C, Prove>& m) {
  List(c, m.peers, [&](auto& peer) {
    c.Number(peer.host);
    List(c, peer.candidates, [&](auto& candidate) { Fields<C>(c, candidate); });
  });
  c.Flag(m.by_device);
  Duration<C>(c, m.limit);
}
template <class C>
void Fields(C& c, Of<C, Measure>& m) {
  c.Number(m.from);
  c.Number(m.peer);
  Fields<C>(c, m.to);
  c.Flag(m.by_device);
}
template <class C>
void Fields(C& c, Of<C, Surveyed>& m) {
  List(c, m.offer.candidates, [&](auto& candidate) { Fields<C>(c, candidate); });
  List(c, m.offer.left_out, [&](auto& one) {
    c.Text(one.interface, kAny);
    c.Number(one.kind);
    c.Text(one.address, kAny);
    c.Text(one.why, kAny);
  });
  c.Texts(m.offer.unmatched, kAny, kAny);
  c.Flag(m.offer.has_rdma);
}
template <class C>
void Fields(C& c, Of<C, Proven>& m) {
  List(c, m.attempts, [&](auto& attempt) {
    c.Number(attempt.from);
    c.Number(attempt.peer);
    c.Number(attempt.to);
    c.Text(attempt.why, kAny);
    Duration<C>(c, attempt.round_trip);
  });
}
template <class C>
void Fields(C& c, Of<C, Measured>& m) {
  c.Number(m.throughput.bits_per_s);
  Duration<C>(c, m.throughput.round_trip);
}

template <class C>
void Fields(C& c, Of<C, comm::Excerpt>& m) {
  c.Number(m.communicator);
  c.Text(m.name, kAny);
  c.Number(m.size);
  List(c, m.members, [&](auto& member) {
    c.Number(member.world_rank);
    c.Number(member.rank);
  });
  c.Flag(m.freed);
  bool rests = m.rest.has_value();
  c.Flag(rests);
  if (rests) {
    if constexpr (!C::kWrites) m.rest.emplace();
    c.Number(m.rest->started);
    c.Number(m.rest->ended);
  }
  List(c, m.calls, [&](auto& seen) {
    c.Number(seen.number);
    c.Number(seen.chain);
    c.Number(seen.call.kind);
    c.Number(seen.call.dtype);
    c.Number(seen.call.reduce);
    c.Number(seen.call.root);
    c.Number(seen.call.count);
    c.Number(seen.call.shape);
  });
  List(c, m.checkpoints, [&](auto& checkpoint) {
    c.Number(checkpoint.first);
    c.Number(checkpoint.second);
  });
}
template <class C>
void Fields(C& c, Of<C, Called>& m) {
  List(c, m.excerpts, [&](auto& excerpt) { Fields<C>(c, excerpt); });
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

// Size of the fields in front of raw bytes.
template <class T>
constexpr std::size_t kBytesAt = 0;
template <>
constexpr std::size_t kBytesAt<Output> = sizeof(Output::rank) + sizeof(Output::stream);
template <>
constexpr std::size_t kBytesAt<ClientData> = sizeof(ClientData::client);

template <class Message>
std::string EncodeAny(const Message& message) {
  return std::visit(
      [&]<class T>(const T& given) {
        Encoder encoder;
        encoder.Number(static_cast<std::uint8_t>(message.index()));
        Fields<Encoder>(encoder, given);
        std::string bytes = std::move(encoder).Payload();
        if constexpr (kBytesAt<T> != 0) bytes += given.bytes;
        return bytes;
      },
      message);
}

template <class Message, class T>
Result<Message> DecodeOne(std::string_view bytes) {
  T out{};
  if constexpr (kBytesAt<T> != 0) {
    const std::size_t at = std::min(bytes.size(), kBytesAt<T>);
    out.bytes = bytes.substr(at);
    bytes = bytes.substr(0, at);
  }
  Decoder decoder(bytes);
  Fields<Decoder>(decoder, out);
  if (Status whole = decoder.Finish("message between root and agent"); !whole) return whole.error();
  return Message(std::move(out));
}

template <class Message, std::size_t... I>
Result<Message> DecodeAny(std::string_view bytes, std::index_sequence<I...>) {
  using Decode = Result<Message> (*)(std::string_view);
  constexpr Decode kDecoders[] = {&DecodeOne<Message, std::variant_alternative_t<I, Message>>...};
  const std::size_t kind = bytes.empty() ? sizeof...(I) : static_cast<unsigned char>(bytes.front());
  if (kind >= sizeof...(I)) {
    return Error{DTRUN_INTERNAL, fmt::format("unknown message {} between root and agent", kind)};
  }
  return kDecoders[kind](bytes.substr(1));
}

}  // namespace

std::string Encode(const ToAgent& message) { return EncodeAny(message); }
std::string Encode(const ToRoot& message) { return EncodeAny(message); }

Result<ToAgent> DecodeToAgent(std::string_view bytes) {
  return DecodeAny<ToAgent>(bytes, std::make_index_sequence<std::variant_size_v<ToAgent>>());
}
Result<ToRoot> DecodeToRoot(std::string_view bytes) {
  return DecodeAny<ToRoot>(bytes, std::make_index_sequence<std::variant_size_v<ToRoot>>());
}

}  // namespace dtrun::agent
