// The results of a `dtrun bench` run, and their output forms: table lines, JSON, SVG, HTML.
//
// Values, filled by the sweep. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/program/host.h"
#include "tools/bench/program/options.h"
#include "tools/bench/program/statistics.h"

namespace dtrun::bench {

// One curve: a layer with one kind of buffers.
struct Column {
  std::string name;         // "gloo", "shm registered", "raw-mpi"
  std::string description;  // library and version; empty if it never started
  std::string failure;      // why it has no more results, or none; empty: no failure
  bool started = false;
  double joining = 0;  // seconds that the slowest rank needed to join
};

struct Cell {
  std::size_t column = 0;
  Shape shape;
  Summary time;                      // nanoseconds
  double algbw = 0, busbw = 0;       // GB/s, from the median; 0 for a barrier
  std::optional<double> efficiency;  // algbw / that of memcpy at the same size
};

struct Report {
  Operation operation = Operation::kAllreduce;
  Element element{};
  int ranks = 0, rounds = 0;
  double seconds = 0;  // planned duration
  double took = 0;     // actual duration including all starts; 0: not finished
  Host host;
  std::string started;  // UTC, ISO 8601
  std::vector<Column> columns;
  std::vector<Cell> cells;
  std::vector<std::string> wrong;  // results that differ from the expected ones
};

std::string HeaderText(const Report& report);  // before the first row
std::string TableHead();
std::string TableRow(const Report& report, const Cell& cell);
std::string FooterText(const Report& report);  // wrong results and early ends

std::string ToJson(const Report& report);
std::string ToSvg(const Report& report);
std::string ToHtml(const Report& report);

}  // namespace dtrun::bench
