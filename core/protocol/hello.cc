#include "core/protocol/hello.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/encoding.h"
#include "core/protocol/frame.h"

namespace dtrun::protocol {
namespace {

template <class Coder>
void LossLimit(Coder& coder, Of<Coder, Nanoseconds>& limit) {
  std::int64_t count = limit.count();
  coder.Number(count);
  if constexpr (!Coder::kWrites) {
    limit = Nanoseconds(count);
    if (limit < kMinLossLimit || limit > kMaxLossLimit) coder.Fail("a loss limit is out of bounds");
  }
}

// Names are also printed on terminals.
template <class Coder>
void Name(Coder& coder, Of<Coder, std::string>& name) {
  coder.Text(name, kMaxNameBytes);
  if constexpr (!Coder::kWrites) {
    const bool printable =
        std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
    if (!printable) coder.Fail("a name has control characters");
  }
}

template <class Coder>
void Fields(Coder& coder, Of<Coder, Hello>& m) {
  coder.Number(m.protocol);
  Name<Coder>(coder, m.version);
  if (m.protocol != kProtocol) return;
  coder.Text(m.job, kMaxNameBytes);
  coder.Number(m.host_index);
  Name<Coder>(coder, m.host_name);
  LossLimit(coder, m.loss_limit);
}

template <class Coder>
void Fields(Coder& coder, Of<Coder, Welcome>& m) {
  Name<Coder>(coder, m.host_name);
  LossLimit(coder, m.loss_limit);
}

template <class Coder>
void Fields(Coder& coder, Of<Coder, Refusal>& m) {
  coder.Flag(m.final);
  coder.Text(m.text, kMaxRefusalBytes);
}

template <class Message>
std::string EncodeAs(Kind kind, const Message& message) {
  Encoder encoder;
  encoder.Number(kind);
  Fields(encoder, message);
  return std::move(encoder).Frame();
}

}  // namespace

std::string Encode(const Hello& hello) {
  Encoder encoder;
  encoder.Number(Kind::kHello);
  encoder.Number(kMagic);
  Fields(encoder, hello);
  return std::move(encoder).Frame();
}

std::string Encode(const Welcome& welcome) { return EncodeAs(Kind::kWelcome, welcome); }

std::string Encode(const Refusal& refusal) {
  return EncodeAs(Kind::kRefusal, Refusal{refusal.final, refusal.text.substr(0, kMaxRefusalBytes)});
}

Result<Hello> DecodeHello(std::string_view payload) {
  Decoder decoder(payload);
  Kind kind{};
  std::uint32_t magic = 0;
  decoder.Number(kind);
  decoder.Number(magic);
  if (kind != Kind::kHello || magic != kMagic) decoder.Fail("it does not begin as one");
  Hello hello;
  Fields(decoder, hello);
  if (decoder.ok() && hello.protocol != kProtocol) return hello;  // another protocol's fields are unknown
  if (Status status = decoder.Finish("hello of an agent"); !status) return std::move(status).error();
  return hello;
}

Result<Welcome> DecodeAnswer(std::string_view payload) {
  Decoder decoder(payload);
  Kind kind{};
  Welcome welcome;
  Refusal refusal;
  decoder.Number(kind);
  if (kind == Kind::kWelcome) {
    Fields(decoder, welcome);
  } else if (kind == Kind::kRefusal) {
    Fields(decoder, refusal);
  } else {
    decoder.Fail("it is neither a welcome nor a refusal");
  }
  if (Status status = decoder.Finish("answer of the root"); !status) return std::move(status).error();
  if (kind == Kind::kWelcome) return welcome;
  return Error{refusal.final ? DTRUN_FAILED_PRECONDITION : DTRUN_BUSY, std::move(refusal.text)};
}

Status Compare(const Hello& hello, std::string_view job) {
  if (hello.version != DTRUN_VERSION) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("the root runs dtrun {}, this host {}; install the same version on both",
                             DTRUN_VERSION, hello.version)};
  }
  if (hello.protocol != kProtocol) {
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("the root's dtrun {} speaks control protocol {}, this host's {}; install the same "
                    "build on both",
                    DTRUN_VERSION, kProtocol, hello.protocol)};
  }
  if (hello.job != job) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("this root is of job '{}', this host belongs to job '{}'; give every host the "
                             "same command, or this one the address of its own job's root",
                             job, hello.job)};
  }
  return {};
}

}  // namespace dtrun::protocol
