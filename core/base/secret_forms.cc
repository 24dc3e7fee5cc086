// Secrets in a format set by their issuer: tokens, JSON web tokens, webhook URLs.
#include <algorithm>
#include <cctype>
#include <span>
#include <string>

#include "core/base/secret_value.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

bool IsTokenLetter(char c) { return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.'; }

template <class Is>
std::size_t CountWhile(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is) - text.begin());
}

// Prefixes of issuers' tokens, by the least number of characters that follow.
constexpr std::string_view kForms10[] = {"xoxa-", "xoxb-", "xoxe-", "xoxe.xox",
                                         "xoxp-", "xoxr-", "xoxs-", "xapp-1-"};
constexpr std::string_view kForms16[] = {"AKIA",   "ASIA",    "glpat-",   "gldt-",    "glptt-",   "glrt-",
                                         "glcbt-", "glsoat-", "sk_live_", "sk_test_", "rk_live_", "rk_test_"};
constexpr std::string_view kForms20[] = {"ghp_",  "gho_",      "ghu_",   "ghs_", "ghr_",   "github_pat_",
                                         "hf_",   "sk-",       "nvapi-", "gsk_", "whsec_", "GOCSPX-",
                                         "ya29.", "dckr_pat_", "hvs.",   "hvb.", "tskey-"};
constexpr std::string_view kForms30[] = {"r8_",     "xai-",   "pplx-", "lsv2_", "AIza",   "SG.",
                                         "dop_v1_", "shpat_", "npm_",  "pypi-", "ATATT3", "AGE-SECRET-KEY-1"};
struct Forms {
  std::size_t least;
  std::span<const std::string_view> prefixes;
};
constexpr Forms kForms[] = {{10, kForms10}, {16, kForms16}, {20, kForms20}, {30, kForms30}};

// Anyone who knows the rest of such a URL may post there or act as the bot.
constexpr std::string_view kWebhooks[] = {
    "hooks.slack.com/services/",   "hooks.slack.com/workflows/",   "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",   "discordapp.com/api/webhooks/", "webhook.office.com/webhookb2/",
    "outlook.office.com/webhook/", "api.telegram.org/bot",
};

// Three parts of base64url; the first begins with {".
std::size_t JsonWebToken(std::string_view text) {
  constexpr std::size_t kLongestHeader = 4096;
  if (!text.starts_with("eyJ") || text.substr(0, kLongestHeader).find('.') == std::string_view::npos)
    return 0;
  const std::size_t size = CountWhile(text, IsTokenLetter);
  return size >= 30 && std::ranges::count(text.substr(0, size), '.') >= 2 ? size : 0;
}

// Base64 of a printable "user:password"; not every word over the base64 alphabet.
bool IsUserAndPassword(std::string_view base64) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (base64.ends_with('=')) base64.remove_suffix(1);
  unsigned bits = 0, held = 0;
  std::string plain;
  for (const char c : base64) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return false;
    bits = (bits << 6 | static_cast<unsigned>(value)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    plain += static_cast<char>(bits >> held & 0xff);
  }
  return plain.find(':') != std::string::npos &&
         std::ranges::all_of(plain, [](unsigned char c) { return std::isprint(c) != 0; });
}

bool BeginsWith(std::string_view text, std::string_view lower) {
  return Lowercase(text.substr(0, lower.size())) == lower;
}

// "Bearer x", "Basic YW5uOmE=".
std::optional<SecretSpan> AfterScheme(std::string_view text) {
  constexpr std::string_view kBearer = "bearer ", kBasic = "basic ";
  const auto is_letter = [](char c) {
    return IsTokenLetter(c) || c == '/' || c == '+' || c == '=' || c == '~';
  };
  for (const std::string_view scheme : {kBearer, kBasic}) {
    if (!BeginsWith(text, scheme)) continue;
    const std::string_view rest = text.substr(scheme.size());
    const std::size_t size = CountWhile(rest, is_letter);
    const bool found = scheme == kBearer ? size >= 8 : IsUserAndPassword(rest.substr(0, size));
    if (found) return SecretSpan{scheme.size(), size};
  }
  return {};
}

}  // namespace

std::optional<SecretSpan> FindSecretForm(std::string_view text) {
  for (const auto& [least, prefixes] : kForms) {
    for (const std::string_view prefix : prefixes) {
      if (!text.starts_with(prefix)) continue;
      const std::size_t follow = CountWhile(text.substr(prefix.size()), IsTokenLetter);
      if (follow >= least) return SecretSpan{0, prefix.size() + follow};
    }
  }
  for (const std::string_view address : kWebhooks) {
    if (!text.starts_with(address)) continue;
    constexpr std::string_view kEnds = "\"'<>(),;?# \t\r\n";
    const std::size_t size = CountWhile(text.substr(address.size()),
                                        [&](char c) { return kEnds.find(c) == std::string_view::npos; });
    constexpr std::size_t kLeast = 8;  // not "/bots" as in its manual
    if (size >= kLeast) return SecretSpan{address.size(), size};
  }
  if (const std::size_t size = JsonWebToken(text)) return SecretSpan{0, size};
  return AfterScheme(text);
}

}  // namespace dtrun
