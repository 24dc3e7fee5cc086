#include "tools/dtrun/completion/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>

#include "core/base/text.h"

namespace dtrun::cli {

std::string RoffLine(std::string_view text) {
  std::string out = !text.empty() && (text[0] == '.' || text[0] == '\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

namespace {

std::string Verbatim(std::string_view text) {
  std::string out = ".nf\n";
  for (const std::string_view line : Split(text, '\n')) out += RoffLine(line) + '\n';
  return out + ".fi\n";
}

// "Exit code: 0 ..." starts a paragraph.
bool OpensParagraph(std::string_view line) {
  const std::size_t colon = line.find(": ");
  return colon != line.npos && colon < 14 && std::isupper(static_cast<unsigned char>(line[0])) != 0;
}

// Formats help text: indented lines stay unchanged, others are filled.
std::string Text(std::string_view text) {
  std::string out;
  bool indented = false, gap = false;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty()) {
      gap = true;
      continue;
    }
    if (line.starts_with("  ") != indented) {
      indented = !indented;
      out += indented ? ".PP\n.nf\n" : ".fi\n.PP\n";
    } else if (!out.empty() && (gap || OpensParagraph(line))) {
      out += ".PP\n";
    }
    gap = false;
    out += RoffLine(line) + '\n';
  }
  return indented ? out + ".fi\n" : out;
}

std::vector<const CLI::App*> VerbsBelow(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string Synopsis(const CLI::App& app, const std::string& name) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  if (!formatter) return "";
  std::string usage = formatter->make_usage(&app, name);
  std::string out = ".nf\n";
  for (std::string_view line : Split(usage, '\n')) {
    if (line.starts_with("Usage:")) line.remove_prefix(6);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (!line.empty()) out += fmt::format(".B {}\n", RoffLine(line));
  }
  return out + ".fi\n";
}

std::string Options(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    std::string names, type = option->get_items_expected_max() > 0 ? option->get_type_name() : "";
    const auto add = [&](const std::string& name) {
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", RoffLine(name));
    };
    if (option->get_positional()) {
      add(option->get_single_name());
      type.clear();
    } else {
      for (const std::string& name : option->get_snames()) add("-" + name);
      for (const std::string& name : option->get_lnames()) add("--" + name);
    }
    if (!type.empty()) names += fmt::format(" \\fI{}\\fR", RoffLine(type));
    out += fmt::format(".TP\n{}\n{}\n", names, RoffLine(option->get_description()));
    if (!option->get_default_str().empty()) {
      out += fmt::format("Default: {}.\n", RoffLine(option->get_default_str()));
    }
  }
  return out;
}

std::string VerbTable(const CLI::App& app, const std::string& name, bool pages) {
  std::string out;
  for (const CLI::App* verb : VerbsBelow(app)) {
    out += fmt::format(
        ".TP\n\\fB{} {}\\fR{}\n{}\n", RoffLine(name), RoffLine(verb->get_name()),
        pages ? fmt::format(", see \\fB{}\\-{}\\fR(1)", RoffLine(name), RoffLine(verb->get_name())) : "",
        RoffLine(verb->get_description()));
  }
  return out;
}

std::string Head(const std::string& page, const std::string& version, std::string_view what) {
  return RoffHead(page, 1, version, what);
}

ManPage RootPage(const CLI::App& root, const std::string& version) {
  const std::string name = root.get_name();
  std::string text = Head(name, version, "launches a training program as many ranks") + ".SH SYNOPSIS\n" +
                     Synopsis(root, name) + ".SH DESCRIPTION\n" + Text(root.get_description()) +
                     ".SH OPTIONS\n" + Options(root) + ".SH VERBS\n" + VerbTable(root, name, true) +
                     ".SH NOTES\n" + Text(root.get_footer());
  return {name, std::move(text)};
}

ManPage VerbPage(const CLI::App& verb, const std::string& root, const std::string& version) {
  const std::string page = root + "-" + verb.get_name(), typed = root + " " + verb.get_name();
  std::string text = Head(page, version, verb.get_description()) + ".SH SYNOPSIS\n" + Synopsis(verb, typed) +
                     ".SH OPTIONS\n" + Options(verb);
  for (const CLI::App* own : VerbsBelow(verb)) {
    const std::string name = typed + " " + own->get_name();
    std::string upper = own->get_name();
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    text += fmt::format(".SH {}\n{}\n.PP\n", RoffLine(upper), RoffLine(own->get_description())) +
            Synopsis(*own, name) + Options(*own);
    if (own->get_footer() != verb.get_footer()) text += ".PP\n" + Text(own->get_footer());
  }
  if (!verb.get_footer().empty()) text += ".SH NOTES\n" + Text(verb.get_footer());
  return {page, text + fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", RoffLine(root))};
}

}  // namespace

std::string RoffHead(const std::string& page, int section, const std::string& version,
                     std::string_view what) {
  std::string title = page;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(
      ".\\\" Written by dtrun itself, from what it prints.\n.TH {} {} \"\" \"dtrun {}\" \"{}\"\n"
      ".SH NAME\n{} \\- {}\n",
      RoffLine(title), section, version, section == 1 ? "User Commands" : "File Formats", RoffLine(page),
      RoffLine(what));
}

std::vector<ManPage> ManPages(const CLI::App& root, const std::string& version, const std::string& verbatim) {
  std::vector<ManPage> pages{RootPage(root, version)};
  for (const CLI::App* verb : VerbsBelow(root)) {
    if (verb->get_name() != "torchrun") {
      pages.push_back(VerbPage(*verb, root.get_name(), version));
      continue;
    }
    const std::string page = root.get_name() + "-torchrun";
    pages.push_back({page, Head(page, version, "takes torchrun's command line") + ".SH DESCRIPTION\n" +
                               Verbatim(verbatim) +
                               fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", RoffLine(root.get_name()))});
  }
  return pages;
}

}  // namespace dtrun::cli
