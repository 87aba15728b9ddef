// Where text goes: data to stdout, everything else to stderr. Colour and the live progress line only where they can be
// shown: on a terminal, by NO_COLOR, FORCE_COLOR and TERM=dumb.
#pragma once
#include <string>
#include <string_view>

namespace outrace::app {

// Thrown when stdout takes no more.
struct OutputFailed {
  int error;  // errno: EPIPE when the reader went away
};

void set_quiet(bool quiet);

// Data. Arrives at once.
void out(std::string_view text);
// A remark for people; nothing under --quiet.
void remark(std::string_view line);
// What went wrong; always shown.
void complain(std::string_view line);
// Replaces the live line: a few words on what is going on. Nothing without a terminal or under --quiet.
void progress(std::string_view text);
void end_progress();

// Columns of the terminal that stdout is, else 0: no limit.
int out_width();
// Marked for stdout, if it shows colour.
std::string bold(std::string_view text);

}  // namespace outrace::app
