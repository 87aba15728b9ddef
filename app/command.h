// What the subcommands share: exit codes, the options of each of them, and how main() learns what to run.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace outrace::app {

// 128 + n: ended by signal n.
enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kDeviceAbsent = 3,
  kDiverged = 4,
  kGateMissed = 5,
  kOutOfMemory = 6,
  kFileCorrupt = 7,
};

// A command line that cannot be meant.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Common {
  bool json = false, quiet = false;
  std::string isa;  // empty: the best one
  int threads = 0;  // 0: the default
  int debug = -1;   // below 0: OUTRACE_DEBUG
};

struct Command {
  Common common;
  std::function<int()> run;  // set by the subcommand that was named
};

// Each makes one subcommand of `app`. Nothing is measured or computed before its run().
void add_race(CLI::App& app, Command& command);
void add_devices(CLI::App& app, Command& command);
void add_parity(CLI::App& app, Command& command);
void add_bench(CLI::App& app, Command& command);
void add_version(CLI::App& app, Command& command);

// --json, --quiet, --isa, --threads, --debug.
void add_common(CLI::App& app, Common& common);

}  // namespace outrace::app
