#include "app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace outrace::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLiveInterval = std::chrono::milliseconds(100);

bool quiet_asked = false;
bool live_shown = false;
Clock::time_point live_at{};

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool dumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || *term == '\0' || std::string_view(term) == "dumb";
}

// no-color.org, force-color.org; who sets both wants no colour.
bool shows_color(int file) {
  if (is_set("NO_COLOR")) return false;
  if (is_set("FORCE_COLOR")) return std::string_view(std::getenv("FORCE_COLOR")) != "0";
  return isatty(file) && !dumb();
}

bool shows_live_line() {
  static const bool shows = isatty(STDERR_FILENO) && !dumb();
  return shows && !quiet_asked;
}

int columns_of(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void to_stderr(std::string_view line) {
  end_progress();
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

void set_quiet(bool quiet) { quiet_asked = quiet; }

void out(std::string_view text) {
  end_progress();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw OutputFailed{errno};
}

void remark(std::string_view line) {
  if (!quiet_asked) to_stderr(line);
}

void complain(std::string_view line) {
  const bool color = shows_color(STDERR_FILENO);
  to_stderr(std::string(color ? "\x1b[1;31moutrace:\x1b[0m " : "outrace: ").append(line));
}

void progress(std::string_view text) {
  if (!shows_live_line()) return;
  const Clock::time_point now = Clock::now();
  if (live_shown && now - live_at < kLiveInterval) return;
  live_at = now;
  live_shown = true;
  const int columns = columns_of(STDERR_FILENO);  // a longer line would wrap, and its first row stay behind
  if (columns > 0) text = text.substr(0, static_cast<size_t>(std::max(columns - 1, 1)));
  std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
}

void end_progress() {
  if (!live_shown) return;
  live_shown = false;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

int out_width() { return isatty(STDOUT_FILENO) ? columns_of(STDOUT_FILENO) : 0; }

std::string bold(std::string_view text) {
  static const bool color = shows_color(STDOUT_FILENO);
  std::string marked(text);
  return color ? "\x1b[1m" + marked + "\x1b[0m" : marked;
}

}  // namespace outrace::app
