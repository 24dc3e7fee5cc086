#include "core/base/secret_forms.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/base/text.h"

namespace dtrun {
namespace {

bool IsTokenLetter(char c) { return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.'; }

template <class Is>
std::size_t CountWhile(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is) - text.begin());
}

struct Form {
  std::string_view prefix;
  std::size_t least;  // minimum number of characters after the prefix
};
constexpr Form kForms[] = {
    // AWS, GitHub, GitLab
    {"AKIA", 16},
    {"ASIA", 16},
    {"ghp_", 20},
    {"gho_", 20},
    {"ghu_", 20},
    {"ghs_", 20},
    {"ghr_", 20},
    {"github_pat_", 20},
    {"glpat-", 16},
    {"gldt-", 16},
    {"glptt-", 16},
    {"glrt-", 16},
    {"glcbt-", 16},
    {"glsoat-", 16},
    // Hugging Face, OpenAI and Anthropic, NVIDIA, Groq, Replicate, xAI, Perplexity, LangSmith
    {"hf_", 20},
    {"sk-", 20},
    {"nvapi-", 20},
    {"gsk_", 20},
    {"r8_", 30},
    {"xai-", 30},
    {"pplx-", 30},
    {"lsv2_", 30},
    // Slack, Stripe, Google, SendGrid, DigitalOcean, Shopify
    {"xoxa-", 10},
    {"xoxb-", 10},
    {"xoxe-", 10},
    {"xoxe.xox", 10},
    {"xoxp-", 10},
    {"xoxr-", 10},
    {"xoxs-", 10},
    {"xapp-1-", 10},
    {"sk_live_", 16},
    {"sk_test_", 16},
    {"rk_live_", 16},
    {"rk_test_", 16},
    {"whsec_", 20},
    {"AIza", 30},
    {"GOCSPX-", 20},
    {"ya29.", 20},
    {"SG.", 30},
    {"dop_v1_", 30},
    {"shpat_", 30},
    // registries, secret stores
    {"npm_", 30},
    {"pypi-", 30},
    {"dckr_pat_", 20},
    {"hvs.", 20},
    {"hvb.", 20},
    {"ATATT3", 30},
    {"AGE-SECRET-KEY-1", 30},
    {"tskey-", 20},
};

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
  for (const Form& form : kForms) {
    if (!text.starts_with(form.prefix)) continue;
    const std::size_t follow = CountWhile(text.substr(form.prefix.size()), IsTokenLetter);
    if (follow >= form.least) return SecretSpan{0, form.prefix.size() + follow};
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
