#include "tools/bench/program/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/json.h"

namespace dtrun::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t CountOf(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

Cell CellOf(std::size_t column, std::uint64_t bytes, double median_ns) {
  Cell cell;
  cell.column = column;
  cell.shape = {bytes / 4, bytes / 4, bytes / 4, bytes};
  cell.time = {median_ns / 2, median_ns, median_ns * 2, 40};
  cell.algbw = cell.busbw = Bandwidth(bytes, median_ns);
  return cell;
}

Report TheReport() {
  Report report;
  report.element = *ParseElement("float32");
  report.ranks = 2;
  report.rounds = 8;
  report.seconds = 2.5;
  report.host = {"node", "6.1", "A <fast> one", 2, 0.25, 0};
  report.started = "2026-01-02T03:04:05Z";
  report.columns = {
      {"memcpy", "glibc", "", true}, {"shm", "dtrun & shm", "", true}, {"ucx", "", "no UCX", false}};
  for (const std::uint64_t bytes : {1024u, 2048u, 4096u}) {
    report.cells.push_back(CellOf(0, bytes, 100));
    report.cells.push_back(CellOf(1, bytes, 200));
    report.cells.back().efficiency = 0.5;
  }
  return report;
}

TEST(Report, TheHeaderHasWhatDecidesWhetherRunsCompare) {
  EXPECT_THAT(HeaderText(TheReport()),
              AllOf(HasSubstr("allreduce of float32, 2 ranks, 8 rounds, about 2.5 s"), HasSubstr("2 cores"),
                    HasSubstr("kernel 6.1"), HasSubstr("load 0.25"), HasSubstr("dtrun & shm"),
                    HasSubstr("skipped, because no UCX")));
}

TEST(Report, ARowIsAsWideAsTheHead) {
  const Report report = TheReport();
  const std::string row = TableRow(report, report.cells[1]);
  EXPECT_EQ(row.size(), TableHead().size());
  EXPECT_THAT(row, AllOf(HasSubstr("1KiB"), HasSubstr("shm"), HasSubstr("0.20"), HasSubstr("5.12"),
                         HasSubstr("0.50")));
  Cell small = report.cells[1];
  small.efficiency = 4.43e-06;
  EXPECT_THAT(TableRow(report, small), ::testing::EndsWith(" 4.43e-06\n"));
  EXPECT_EQ(TableRow(report, small).size(), TableHead().size());
}

TEST(Report, ABarrierHasNoBandwidth) {
  Report report = TheReport();
  EXPECT_THAT(TableRow(report, CellOf(1, 0, 1000)), ::testing::MatchesRegex(" +- +shm .* +- +- +-\n"));
}

TEST(Report, TheFooterHasWrongResultsAndWhatEndedEarly) {
  Report report = TheReport();
  EXPECT_EQ(FooterText(report), "");
  report.columns[1].failure = "rank 1 died";
  report.wrong = {"shm, 8: element 3 is 4, expected 5"};
  EXPECT_THAT(FooterText(report), AllOf(HasSubstr("rank 1 died"), HasSubstr("wrong result: shm, 8")));
}

TEST(Report, TheFooterSaysHowLongItTookAndWhyLongerThanAsked) {
  Report report = TheReport();
  report.took = 3;
  EXPECT_EQ(FooterText(report), "6 rows in 3.0 s\n");
  report.took = 20;
  EXPECT_THAT(FooterText(report), AllOf(HasSubstr("6 rows in 20.0 s of about 2.5 s: every layer is started"),
                                        HasSubstr("--sizes")));
}

TEST(Report, JsonHasEveryRow) {
  const auto json = ParseJson(ToJson(TheReport()));
  EXPECT_EQ(json["operation"], "allreduce");
  EXPECT_EQ(json["host"]["load"], 0.25);
  EXPECT_EQ(json["results"].size(), 6u);
  EXPECT_EQ(json["results"][1]["layer"], "shm");
  EXPECT_EQ(json["results"][1]["median_us"], 0.2);
  EXPECT_EQ(json["results"][1]["efficiency"], 0.5);
  EXPECT_TRUE(json["results"][0]["efficiency"].is_null());
  EXPECT_EQ(json["layers"][2]["failure"], "no UCX");
  EXPECT_TRUE(json["layers"][1]["failure"].is_null());
}

TEST(Report, SvgHasACurvePerLayerAndDiagramAndAPointPerRow) {
  const std::string svg = ToSvg(TheReport());
  EXPECT_EQ(CountOf(svg, "<polyline"), 4u);
  EXPECT_EQ(CountOf(svg, "<circle"), 12u);
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg "), HasSubstr("</svg>"), HasSubstr("dtrun &amp; shm"),
                         HasSubstr("ucx: skipped"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Report, SvgOfFigureslessReportsSaysSo) {
  Report report = TheReport();
  report.cells.clear();
  EXPECT_EQ(CountOf(ToSvg(report), "no figures"), 2u);
}

TEST(Report, SvgOfOneSizeAndOfABarrierHasPoints) {
  Report report = TheReport();
  report.cells = {CellOf(1, 1024, 100)};
  EXPECT_THAT(ToSvg(report), AllOf(HasSubstr("<circle"), Not(HasSubstr("nan"))));
  report.cells = {CellOf(1, 0, 100)};
  EXPECT_EQ(CountOf(ToSvg(report), "<circle"), 1u);  // only the time
}

TEST(Report, HtmlHasDiagramAndTableWithNothingUnescaped) {
  const std::string html = ToHtml(TheReport());
  EXPECT_THAT(html, AllOf(HasSubstr("<svg "), HasSubstr("A &lt;fast&gt; one"), HasSubstr("median us"),
                          HasSubstr("</html>"), Not(HasSubstr("<fast>"))));
}

}  // namespace
}  // namespace dtrun::bench
