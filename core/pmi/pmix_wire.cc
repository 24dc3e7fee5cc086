#include "core/pmi/pmix_wire.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/encoding.h"
#include "core/base/visit.h"

namespace dtrun::pmi {
namespace {

constexpr std::size_t kMaxVariables = 1024;
constexpr std::size_t kMaxEntries = 1 << 20;  // hosts, ranks

// Lists the fields of every message once, for both directions.
template <class C>
void Fields(C& c, Of<C, PmixBegin>& m) {
  c.Number(m.job.kind);
  c.Text(m.job.name, kMaxPmixTextBytes);
  List(c, m.job.hosts, kMaxEntries, [&](auto& host) {
    c.Text(host.name, kMaxPmixTextBytes);
    c.Number(host.first_rank);
    c.Number(host.local_size);
  });
  c.Number(m.job.here);
  c.Text(m.disk, kMaxPmixTextBytes);
  c.Text(m.memory, kMaxPmixTextBytes);
}
template <class C>
void Fields(C& c, Of<C, PmixAnswer>& m) {
  c.Number(m.fence);
  c.Flag(m.complete);
  c.Text(m.bytes, kMaxPmixAnswerBytes);
}
template <class C>
void Fields(C& c, Of<C, PmixReady>& m) {
  List(c, m.variables, kMaxEntries, [&](auto& one) { c.Pairs(one, kMaxVariables, kMaxPmixTextBytes); });
}
template <class C>
void Fields(C& c, Of<C, PmixRefused>& m) {
  c.Text(m.why, kMaxPmixTextBytes);
}
template <class C>
void Fields(C& c, Of<C, PmixStarted>& m) {
  c.Number(m.rank);
}
template <class C>
void Fields(C& c, Of<C, PmixFinished>& m) {
  c.Number(m.rank);
}
template <class C>
void Fields(C& c, Of<C, PmixAborted>& m) {
  c.Number(m.rank);
  c.Number(m.code);
  c.Text(m.message, kMaxPmixTextBytes);
}
template <class C>
void Fields(C& c, Of<C, PmixSaid>& m) {
  c.Number(m.rank);
  c.Text(m.text, kMaxPmixTextBytes);
}
template <class C>
void Fields(C& c, Of<C, PmixFenced>& m) {
  c.Number(m.fence);
  List(c, m.ranks, kMaxEntries, [&](auto& rank) { c.Number(rank); });
  c.Text(m.bytes, kMaxPmixFenceBytes);
}

template <class Message>
std::string EncodeAny(const Message& message) {
  Encoder encoder;
  encoder.Number(static_cast<std::uint8_t>(message.index()));
  Visit([&](const auto& given) { Fields<Encoder>(encoder, given); }, message);
  return std::move(encoder).Frame();
}

template <class Message>
Result<Message> DecodeAny(std::string_view payload) {
  const auto kind =
      payload.empty() ? std::variant_size_v<Message> : static_cast<unsigned char>(payload.front());
  Message message;
  if (!MakeAlternative(kind, message)) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("unknown message {} between agent and PMIx server", kind)};
  }
  Decoder decoder(payload.substr(1));
  Visit([&](auto& given) { Fields<Decoder>(decoder, given); }, message);
  if (Status whole = decoder.Finish("message between agent and PMIx server"); !whole) return whole.error();
  return message;
}

}  // namespace

std::string Encode(const ToPmix& message) { return EncodeAny(message); }
std::string Encode(const FromPmix& message) { return EncodeAny(message); }

Result<ToPmix> DecodeToPmix(std::string_view payload) { return DecodeAny<ToPmix>(payload); }
Result<FromPmix> DecodeFromPmix(std::string_view payload) { return DecodeAny<FromPmix>(payload); }

}  // namespace dtrun::pmi
