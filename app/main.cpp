// The command `outrace`: reads the command line, runs one subcommand, and turns what went wrong into a sentence and an
// exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "app/command.h"
#include "app/signals.h"
#include "app/terminal.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"
#include "outrace/core/thread.h"
#include "outrace/core/version.h"

namespace outrace::app {
namespace {

constexpr const char* kCommonGroup = "Of every command";
constexpr const char* kFooter =
    "Alone, `outrace` is `outrace race`. `outrace COMMAND --help` explains a command.\n\n"
    "Examples:\n"
    "  outrace                      train the article's network on every device found\n"
    "  outrace race --sweep width   from which size on does a faster processor pay?\n"
    "  outrace devices              what this machine has, measured\n"
    "  outrace parity cpu opencl:0  do two devices compute the same?\n"
    "  outrace bench seed --json    one figure, to compare with other libraries\n\n"
    "Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed,\n"
    "2 wrong usage, 3 a device asked for is absent, 4 the training diverged, 5 a\n"
    "required accuracy was missed, 6 out of memory, 7 a file is corrupt, 128+n ended\n"
    "by signal n.";

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::option: return kUsage;
    case ErrorKind::device: return kDeviceAbsent;
    case ErrorKind::diverged: return kDiverged;
    case ErrorKind::memory: return kOutOfMemory;
    case ErrorKind::file: return kFileCorrupt;
    default: return kFailed;
  }
}

bool has_command(const CLI::App& app, const std::string& name) {
  return std::ranges::any_of(app.get_subcommands({}), [&](const CLI::App* sub) { return sub->get_name() == name; });
}

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands({})) names += (names.empty() ? "" : ", ") + sub->get_name();
  return names;
}

// Without a command, the arguments are race's.
void complete(const CLI::App& app, std::vector<std::string>& arguments) {
  if (!arguments.empty() && !arguments[0].starts_with('-') && !has_command(app, arguments[0]))
    throw UsageError(fmt::format("unknown command '{}'; there are: {}", arguments[0], command_names(app)));
  const bool complete_already = std::ranges::any_of(arguments, [&](const std::string& a) {
    return a == "-h" || a == "--help" || a == "--version" || has_command(app, a);
  });
  if (!complete_already) arguments.insert(arguments.begin(), "race");
}

void apply(const Common& common) {
  set_quiet(common.quiet);
  if (common.debug >= 0) set_debug_level(common.debug);
  if (!common.isa.empty()) set_active_isa(parse_isa(common.isa));
  if (common.threads > 0) set_num_threads(common.threads);
}

// Parses and runs. Throws what goes wrong.
int run(int argc, char** argv) {
  Command command;
  CLI::App app("Trains neural networks, and shows how much faster each processor is, and why.", "outrace");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("outrace {}", kVersion), "Print the version and exit")
      ->group(kCommonGroup);
  app.require_subcommand(1);
  add_race(app, command);
  add_devices(app, command);
  add_parity(app, command);
  add_bench(app, command);
  add_version(app, command);
  add_common(app, command.common);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  complete(app, arguments);
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    std::ostringstream text;
    if (app.exit(e, text, text) == 0) {
      out(text.str());
      return kDone;
    }
    const auto subs = app.get_subcommands();
    throw UsageError(fmt::format("{}; see: outrace {}--help", e.what(), subs.empty() ? "" : subs[0]->get_name() + " "));
  }
  apply(command.common);
  const int code = command.run();
  return stop_signal() != 0 ? 128 + stop_signal() : code;
}

}  // namespace

void add_common(CLI::App& app, Common& common) {
  app.get_help_ptr()->group(kCommonGroup);
  app.add_flag("--json", common.json, "Print one JSON object instead of text")->group(kCommonGroup);
  app.add_flag("-q,--quiet", common.quiet, "Print the result and errors only")->group(kCommonGroup);
  app.add_option("--isa", common.isa, "Use kernels for avx2 or avx512 (default: the best)")
      ->type_name("NAME")
      ->group(kCommonGroup);
  app.add_option("--threads", common.threads, "Threads (default: one a usable core)")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N")
      ->group(kCommonGroup);
  app.add_option("--debug", common.debug, "Tell 1 new programs, 2 choices, 3 every kernel")
      ->check(CLI::Range(0, 3).description(""))
      ->type_name("LEVEL")
      ->group(kCommonGroup);
}

}  // namespace outrace::app

int main(int argc, char** argv) {
  using namespace outrace;
  using namespace outrace::app;
  bound_spinning();
  watch_signals();
  try {
    return run(argc, argv);
  } catch (const OutputFailed& e) {
    if (e.error == EPIPE) {
      complain("the output was closed before all was written; stopped");
      return 128 + SIGPIPE;
    }
    complain(fmt::format("cannot write the output: {}", std::strerror(e.error)));
    return kFailed;
  } catch (const UsageError& e) {
    complain(e.what());
    return kUsage;
  } catch (const Error& e) {
    complain(e.what());
    return exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    complain("out of memory; smaller sizes may fit");
    return kOutOfMemory;
  } catch (const std::exception& e) {
    complain(e.what());
    return kFailed;
  }
}
