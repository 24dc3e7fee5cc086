#include "core/output/output.h"

#include <array>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/fd.h"
#include "core/base/own_file.h"
#include "core/output/display.h"
#include "core/output/file_write.h"
#include "core/output/fold.h"

namespace dtrun::output {
namespace {

struct LogFile {
  std::string path;
  UniqueFd fd;
};

// An empty path opens nothing. Several ranks may append to one file.
Result<LogFile> OpenLog(const std::filesystem::path& path, const RankOutput::Place& place,
                        bool append = false) {
  LogFile log{path, {}};
  if (path.empty()) return log;
  const auto open_in = [&](int folder) {
    return append ? AppendToOwnFileAt(folder, path, place.file_mode)
                  : MakeOwnFileAt(folder, path, place.file_mode);
  };
  const auto look_up = [&]() -> Result<UniqueFd> {
    const Result<UniqueFd> folder = OpenFolder(path.parent_path());
    if (folder) return open_in(folder->get());
    return Error{DTRUN_SYSTEM, "cannot create '" + path.string() + "': " + folder.error().text};
  };
  const bool held = place.descriptor >= 0 && path.parent_path() == place.folder;
  Result<UniqueFd> fd = held ? open_in(place.descriptor) : look_up();
  if (fd) {
    log.fd = *std::move(fd);
    return log;
  }
  Error error = std::move(fd).error();
  // Other errors name a next step of their own.
  if (error.text.find("; ") == std::string::npos)
    error.text += "; choose a folder that can be written with [logs] dir";
  return error;
}

Routes DefaultRoutes(const std::filesystem::path& folder, int rank) {
  const std::string name = "rank-" + std::to_string(rank);
  Routes routes;
  routes.out.file = folder / (name + ".out");
  routes.err.file = folder / (name + ".err");
  return routes;
}

// A route with open files.
struct Way {
  LogFile log;
  bool shown;
  std::string label;
  std::vector<std::string> wanted;
  LogFile wanted_log;
};

Result<Way> OpenWay(Route route, const std::string& label, const RankOutput::Place& place) {
  Result<LogFile> log = OpenLog(route.file, place);
  if (!log) return std::move(log).error();
  Result<LogFile> wanted_log = OpenLog(route.wanted_file, place, true);
  if (!wanted_log) return std::move(wanted_log).error();
  return Way{*std::move(log), route.shown, std::move(route.prefix).value_or(label), std::move(route.wanted),
             *std::move(wanted_log)};
}

class RankFiles final : public RankOutput {
 public:
  RankFiles(int rank, Way out, Way err, const Style& style, Console& console, Fold* fold)
      : rank_(rank),
        console_(console),
        fold_(fold),
        stamps_(style.timestamps),
        states_are_shown_(console.terminal(Stream::kOut)),
        between_states_(style.between_states),
        sides_{MakeSide(Stream::kOut, std::move(out), style), MakeSide(Stream::kErr, std::move(err), style)} {
    if (fold_ != nullptr && (sides_[0].way.shown || sides_[1].way.shown)) fold_->Add(rank);
  }

  void Feed(Stream stream, std::string_view bytes) override {
    if (stamps_) stamp_ = Timestamp();
    Side& side = SideOf(stream);
    WriteLog(side.way.log, bytes);
    side.lines.Feed(bytes);
    Print(stream, side);
  }

  void Close(Stream stream) override {
    Side& side = SideOf(stream);
    side.lines.Close();
    Print(stream, side);
    side.open = false;
    if (fold_ != nullptr && !sides_[0].open && !sides_[1].open) fold_->Remove(rank_);
  }

  void Idle() override {
    if (fold_ != nullptr) fold_->Flush();
    for (Side& side : sides_) {
      // Unchanged since the last call, so the rest of the line is not just on its way.
      side.stale = !side.lines.State().empty() && !std::exchange(side.fresh, false);
      if (!states_are_shown_) PassState(side);
    }
    ShowState(sides_[0].stale ? sides_[0] : sides_[1]);
  }

  std::vector<std::string> Tail(std::size_t count) const override { return tail_.Last(count); }

  std::vector<std::filesystem::path> Files() const override {
    std::vector<std::filesystem::path> files;
    for (const Stream stream : {Stream::kErr, Stream::kOut}) {
      const std::string& path = sides_[stream == Stream::kErr].way.log.path;
      if (!path.empty()) files.emplace_back(path);
    }
    return files;
  }

  bool cut() const override { return log_given_up_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Side {
    Stream stream;
    Way way;
    LineAssembler lines;
    bool terminal;      // shows the lines
    std::string label;  // the coloured label of the route
    bool open = true;
    bool fresh = false;  // a line ended since the last Idle
    bool stale = false;  // show the unfinished line
    TamedLines tamed = {};
    std::string passed = {};                          // the last state of a bar that was shown as a line
    std::optional<Clock::time_point> passed_at = {};  // unset: never
  };

  Side MakeSide(Stream stream, Way way, const Style& style) {
    LineAssembler lines(
        [this, stream](std::string_view text, bool continues) { Take(SideOf(stream), text, continues); });
    const bool terminal = console_.terminal(stream);
    std::string label = WantsColour(style.colour, terminal) ? Coloured(way.label, rank_) : way.label;
    return {stream, std::move(way), std::move(lines), terminal, std::move(label)};
  }

  Side& SideOf(Stream stream) { return sides_[stream == Stream::kErr]; }

  void Take(Side& side, std::string_view text, bool continues) {
    const Way& way = side.way;
    tail_.Append(text);
    for (const std::string& wanted : way.wanted) {
      if (text.find(wanted) == text.npos) continue;
      WriteLog(way.wanted_log, std::string(way.label).append(text).append("\n"));
      break;
    }
    Show(side, text, continues);
  }

  void Show(Side& side, std::string_view text, bool continues) {
    if (!side.way.shown) return;
    if (fold_ != nullptr) {
      side.fresh = true;
      return fold_->Take(rank_, side.stream, text, continues);
    }
    batch_ += stamp_;
    batch_ += side.label;
    if (continues) batch_ += kContinuation;
    if (side.terminal) {
      side.tamed.Append(text, continues, &batch_);
    } else {
      batch_ += text;
    }
    batch_ += '\n';
  }

  // Calls the console once for all lines of a Feed. Sends the state first, so that a finished bar does not
  // reappear below its own last line.
  void Print(Stream stream, Side& side) {
    if (!batch_.empty()) {
      side.fresh = true;
      side.stale = false;
    }
    ShowState(side);
    if (batch_.empty()) return;
    console_.Line(stream, std::string_view(batch_).substr(0, batch_.size() - 1));
    batch_.clear();
  }

  std::string_view StateOf(const Side& side) const {
    const bool worth_showing = side.way.shown && (side.stale || side.lines.redrawn());
    return worth_showing ? WholeCharacters(side.lines.State()) : std::string_view();
  }

  // Without a terminal a bar is a line now and then: a log shows that the rank goes on.
  void PassState(Side& side) {
    const auto now = Clock::now();
    if (!side.lines.redrawn() || (side.passed_at && now - *side.passed_at < between_states_)) return;
    const std::string_view state = StateOf(side);
    if (Blank(state) || state == side.passed) return;
    side.passed = state;
    side.passed_at = now;
    if (stamps_) stamp_ = Timestamp();
    Show(side, side.passed, false);
    Print(side.stream, side);
  }

  // `newest` is the side that changed last.
  void ShowState(const Side& newest) {
    if (!states_are_shown_) return;
    const Side* side = &newest;
    if (Blank(StateOf(*side))) side = &sides_[&newest == sides_.data()];
    const std::string_view state = StateOf(*side);
    std::string text;
    if (!Blank(state)) text.append(side->label).append(state);
    if (text == shown_) return;
    shown_ = std::move(text);
    console_.Transient(rank_, shown_);
  }

  // After a failure all files are given up, so that they end at the same time.
  void WriteLog(const LogFile& log, std::string_view bytes) {
    if (!log.fd || log_given_up_) return;
    const int number = WriteAll(log.fd.get(), bytes);
    if (number == 0) return;
    log_given_up_ = true;
    const Error error = Error::System("dtrun: cannot write '" + log.path + "'", number);
    console_.Line(Stream::kErr,
                  error.text + "; rank " + std::to_string(rank_) + "'s output continues here only");
  }

  const int rank_;
  Console& console_;
  Fold* const fold_;  // null: none
  const bool stamps_;
  std::string stamp_;  // timestamp of the current input
  const bool states_are_shown_;
  const std::chrono::milliseconds between_states_;
  std::array<Side, 2> sides_;
  output::Tail tail_;
  std::string batch_;  // prefixed lines of the current Feed
  std::string shown_;  // the state of this rank on the console
  bool log_given_up_ = false;
};

}  // namespace

void LineAssembler::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    std::size_t redraw = part.find('\r');
    const bool begins = current_.text.empty() && !redrawn_;
    if (begins && end != bytes.npos && redraw == part.npos && part.size() <= kLongestLine) {
      emit_(part, false);  // an ordinary whole line: no copy needed
    } else {
      for (; redraw != part.npos; redraw = part.find('\r')) {
        Append(part.substr(0, redraw));
        CarriageReturn();
        part.remove_prefix(redraw + 1);
      }
      Append(part);
      if (end != bytes.npos) EndLine();
    }
    if (end == bytes.npos) return;
    bytes.remove_prefix(end + 1);
  }
}

void LineAssembler::Close() {
  const bool wiped = redrawn_ && Blank(State());
  if (State().empty() || wiped) {
    Forget();
  } else {
    EndLine();
  }
}

void LineAssembler::Append(std::string_view bytes) {
  std::string& text = current_.text;
  text.append(bytes);
  std::size_t emitted = 0;
  while (text.size() - emitted > kLongestLine) {
    const std::string_view rest = std::string_view(text).substr(emitted);
    const std::size_t cut = CutPoint(rest, kLongestLine);
    emit_(rest.substr(0, cut), current_.continues);
    current_.continues = true;
    emitted += cut;
  }
  text.erase(0, emitted);
}

void LineAssembler::CarriageReturn() {
  redrawn_ = true;
  if (current_.text.empty()) return;
  if (Blank(current_.text)) {
    earlier_.Clear();
  } else {
    std::swap(earlier_, current_);
  }
  current_.Clear();
}

void LineAssembler::EndLine() {
  emit_(Shown().text, Shown().continues);
  Forget();
}

void LineAssembler::Forget() {
  earlier_.Clear();
  current_.Clear();
  redrawn_ = false;
}

Result<std::unique_ptr<RankOutput>> RankOutput::Open(const Place& place, const Source& source,
                                                     const Style& style, Console& console,
                                                     std::optional<Routes> routes, Fold* fold) {
  if (!routes) routes = DefaultRoutes(place.folder, source.rank);
  if (!style.Shows(source.rank)) routes->out.shown = routes->err.shown = false;
  const std::string label = LabelOf(source, style.prefix);
  Result<Way> out = OpenWay(std::move(routes->out), label, place);
  if (!out) return std::move(out).error();
  Result<Way> err = OpenWay(std::move(routes->err), label, place);
  if (!err) return std::move(err).error();
  return std::unique_ptr<RankOutput>(
      std::make_unique<RankFiles>(source.rank, *std::move(out), *std::move(err), style, console, fold));
}

}  // namespace dtrun::output
