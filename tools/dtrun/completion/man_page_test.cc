#include "tools/dtrun/completion/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ManPages, HaveVerbsOptionsAndNotes) {
  CLI::App app{"Launches.\n\n  dtrun a-b\n  dtrun .c\n", "dtrun"};
  std::string text;
  CLI::App* config = app.add_subcommand("config", "Check a config");
  config->add_subcommand("list", "Every option")
      ->add_option("-c,--config", text, "Where it \\ is")
      ->type_name("FILE");
  app.add_subcommand("torchrun", "Take it");
  app.add_subcommand("agent", "")->group("");
  app.footer("Read on.\nExit code: 0 or 2;\n'x' too.\n");

  const std::vector<ManPage> pages = ManPages(app, "1.2.3", "usage: dtrun torchrun\n.x");
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0].name, "dtrun");
  EXPECT_THAT(
      pages[0].text,
      AllOf(HasSubstr(".TH DTRUN 1 \"\" \"dtrun 1.2.3\""), HasSubstr(".nf\n  dtrun a\\-b\n  dtrun .c\n.fi\n"),
            HasSubstr("\\fBdtrun config\\fR, see \\fBdtrun\\-config\\fR(1)\nCheck a config\n"),
            HasSubstr("Read on.\n.PP\nExit code: 0 or 2;\n\\&'x' too.\n"), Not(HasSubstr("agent"))));
  EXPECT_EQ(pages[1].name, "dtrun-config");
  EXPECT_THAT(pages[1].text,
              AllOf(HasSubstr(".SH LIST\nEvery option\n"),
                    HasSubstr(".TP\n\\fB\\-c\\fR, \\fB\\-\\-config\\fR \\fIFILE\\fR\nWhere it \\e is\n")));
  EXPECT_EQ(pages[2].name, "dtrun-torchrun");
  EXPECT_THAT(pages[2].text, HasSubstr("usage: dtrun torchrun\n\\&.x\n"));
}

}  // namespace
}  // namespace dtrun::cli
