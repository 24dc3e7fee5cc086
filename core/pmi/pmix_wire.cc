#include "core/pmi/pmix_wire.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/encoding.h"

namespace dtrun::pmi {
namespace {

constexpr std::size_t kMaxVariables = 1024;

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

// The fields of every message, once for both directions.
template <class C>
void Fields(C& c, Of<C, PmixBegin>& m) {
  c.Number(m.job.kind);
  c.Text(m.job.name, kMaxPmixTextBytes);
  List(c, m.job.hosts, [&](auto& host) {
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
  List(c, m.variables, [&](auto& one) { c.Pairs(one, kMaxVariables, kMaxPmixTextBytes); });
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
  List(c, m.ranks, [&](auto& rank) { c.Number(rank); });
  c.Text(m.bytes, kMaxPmixFenceBytes);
}

template <class Message>
std::string EncodeAny(const Message& message) {
  return std::visit(
      [&]<class T>(const T& given) {
        Encoder encoder;
        encoder.Number(static_cast<std::uint8_t>(message.index()));
        Fields<Encoder>(encoder, given);
        return std::move(encoder).Frame();
      },
      message);
}

template <class Message, class T>
Result<Message> DecodeOne(std::string_view payload) {
  T out{};
  Decoder decoder(payload);
  Fields<Decoder>(decoder, out);
  if (Status whole = decoder.Finish("message between agent and PMIx server"); !whole) return whole.error();
  return Message(std::move(out));
}

template <class Message, std::size_t... I>
Result<Message> DecodeAny(std::string_view payload, std::index_sequence<I...>) {
  using Decode = Result<Message> (*)(std::string_view);
  constexpr Decode kDecoders[] = {&DecodeOne<Message, std::variant_alternative_t<I, Message>>...};
  const std::size_t kind = payload.empty() ? sizeof...(I) : static_cast<unsigned char>(payload.front());
  if (kind >= sizeof...(I)) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("unknown message {} between agent and PMIx server", kind)};
  }
  return kDecoders[kind](payload.substr(1));
}

}  // namespace

std::string Encode(const ToPmix& message) { return EncodeAny(message); }
std::string Encode(const FromPmix& message) { return EncodeAny(message); }

Result<ToPmix> DecodeToPmix(std::string_view payload) {
  return DecodeAny<ToPmix>(payload, std::make_index_sequence<std::variant_size_v<ToPmix>>());
}
Result<FromPmix> DecodeFromPmix(std::string_view payload) {
  return DecodeAny<FromPmix>(payload, std::make_index_sequence<std::variant_size_v<FromPmix>>());
}

}  // namespace dtrun::pmi
