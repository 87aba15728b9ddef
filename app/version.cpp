// `outrace version`: what was built, by what, and what it runs on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/terminal.h"
#include "outrace/core/cpu_info.h"
#include "outrace/core/version.h"

namespace outrace::app {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kBuild = "sanitize";
#elif defined(NDEBUG)
constexpr const char* kBuild = "release";
#else
constexpr const char* kBuild = "debug";
#endif

int version(const Common& common) {
  if (common.json) {
    const nlohmann::ordered_json json = {{"version", kVersion},
                                         {"compiler", kCompiler},
                                         {"build", kBuild},
                                         {"isa", name_of(active_isa())},
                                         {"cpu", cpu_info().model}};
    out(json.dump() + "\n");
  } else {
    out(fmt::format("outrace  {}\ncompiler {}\nbuild    {}\nisa      {}\ncpu      {}\n", kVersion, kCompiler, kBuild,
                    name_of(active_isa()), cpu_info().model));
  }
  return kDone;
}

}  // namespace

void add_version(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("version", "Version, compiler, build, instruction set in use");
  sub->footer("Examples:\n  outrace version\n  outrace version --json");
  add_common(*sub, command.common);
  sub->callback([&command] { command.run = [&command] { return version(command.common); }; });
}

}  // namespace outrace::app
