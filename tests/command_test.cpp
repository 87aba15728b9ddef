// label: unit
// The command as a user meets it: exit codes, what goes to stdout and what to stderr, signals, closed pipes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace outrace {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

struct Outcome {
  int code = -1;  // 128 + n where signal n killed it
  std::string out, err;
};

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int end) {
    if (ends[end] >= 0) close(std::exchange(ends[end], -1));
  }
};

// Runs `outrace`, which lies beside this test. `watch` sees stdout so far, each time some arrives, and may act on the
// process or close the pipe.
Outcome run(const Arguments& arguments, const std::function<void(pid_t, const std::string&, Pipe&)>& watch = nullptr,
            const Arguments& environment = {}) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").replace_filename("outrace").string();
  Pipe out, err;
  const pid_t child = fork();
  if (child == 0) {
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    for (const char* name : {"NO_COLOR", "FORCE_COLOR", "OUTRACE_DEBUG", "OUTRACE_ISA"}) unsetenv(name);
    for (const std::string& variable : environment) putenv(strdup(variable.c_str()));
    std::vector<char*> argv = {strdup(program.c_str())};
    for (const std::string& a : arguments) argv.push_back(strdup(a.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  out.close_end(1);
  err.close_end(1);
  Outcome outcome;
  std::array<pollfd, 2> open{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (poll(open.data(), open.size(), -1) < 0) continue;
    for (pollfd& p : open) {
      if (p.fd < 0 || p.revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = read(p.fd, buffer.data(), buffer.size());
      std::string& text = p.fd == err.ends[0] ? outcome.err : outcome.out;
      if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
      if (got == 0) p.fd = -1;
      if (got > 0 && watch && p.fd == out.ends[0]) {
        watch(child, outcome.out, out);
        if (out.ends[0] < 0) p.fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// A race of a moment.
Arguments tiny_race(const Arguments& more = {}) {
  Arguments all = {"race",    "--inputs", "20",        "--hidden", "16",       "--outputs", "4",
                   "--batch", "8",        "--batches", "40",       "--epochs", "2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

size_t lines_in(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Command, help_names_every_command_and_teaches) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command : {"race", "parity", "devices", "bench", "version"}) {
    EXPECT_TRUE(contains(help.out, std::string("\n  ") + command)) << command;
    const Outcome own = run({command, "--help"});
    EXPECT_EQ(own.code, 0);
    EXPECT_TRUE(contains(own.out, std::string("Usage: outrace ") + command)) << own.out;
    EXPECT_TRUE(contains(own.out, "Examples:")) << own.out;
    EXPECT_TRUE(contains(own.out, "--json")) << own.out;
  }
  EXPECT_TRUE(contains(help.out, "Exit codes"));
}

TEST(Command, wrong_usage_is_2_with_one_sentence) {
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"--nonsense"}, "--nonsense"},
      {{"race", "--nonsense"}, "outrace race --help"},
      {{"marathon"}, "race, devices, parity, bench, version"},
      {{"devices", "more"}, "more"},
      {{"bench"}, "seed"},
      {{"parity", "cpu"}, "b is required"},
      {{"parity", "cpu", "null"}, "null"},
      {{"bench", "gpt17"}, "tiny"},
      {{"bench", "seed", "--dtype", "f8"}, "f8"},
      {{"bench", "seed", "--loop", "round"}, "captured, plain, item"},
      {{"--device", "toaster"}, "toaster"},
      {{"--device", "null"}, "null"},
      {{"--batch", "0"}, "--batch"},
      {{"--hidden", "many"}, "many"},
      {{"--lr", "nan"}, "--lr"},
      {{"--isa", "mmx"}, "mmx"},
      {{"--threads", "0"}, "--threads"},
      {{"--sweep", "depth"}, "depth"},
  };
  for (const auto& [arguments, part] : cases) {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.code, 2) << arguments.back();
    EXPECT_EQ(o.out, "") << arguments.back();
    EXPECT_TRUE(o.err.starts_with("outrace: ")) << o.err;
    EXPECT_TRUE(contains(o.err, part)) << o.err;
  }
}

TEST(Command, an_absent_device_is_3) {
  for (const char* device : {"cuda:7", "opencl:99"}) {
    const Outcome o = run({"race", "--device", "cpu", "--device", device});
    EXPECT_EQ(o.code, 3);
    EXPECT_EQ(o.out, "") << "nothing is trained first";
    EXPECT_TRUE(contains(o.err, device)) << o.err;
    EXPECT_EQ(lines_in(o.err), 1u);
  }
}

TEST(Command, parity_compares_two_devices) {
  const Arguments small = {"--inputs", "20", "--hidden", "16", "--outputs", "4", "--batch", "8", "--steps", "3"};
  Arguments arguments = {"parity", "cpu", "cpu", "--json"};
  arguments.insert(arguments.end(), small.begin(), small.end());
  const Outcome o = run(arguments);
  EXPECT_EQ(o.code, 0) << o.err;
  const Json json = Json::parse(o.out);
  EXPECT_TRUE(json["equal"]);
  for (const Json& network : json["networks"]) {
    EXPECT_GE(network["forward_ops"], 6);
    EXPECT_GE(network["backward_ops"], 6);
    EXPECT_EQ(network["loss"]["difference"], 0);
    EXPECT_EQ(network["first_fault"], nullptr);
  }
  arguments.erase(arguments.begin() + 3);
  EXPECT_TRUE(run(arguments).out.ends_with("Equal within the bounds.\n"));
}

TEST(Command, a_race_prints_as_the_article_and_ends_with_the_table) {
  const Outcome o = run(tiny_race());
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(o.out.starts_with("Training on cpu\nBatch [4/40], Loss: ")) << o.out;
  EXPECT_TRUE(contains(o.out, "Batch [40/40], Loss: ")) << o.out;
  EXPECT_TRUE(contains(o.out, "Epoch [2/2], Loss: ")) << o.out;
  const size_t table = o.out.find("\ndevice ");
  ASSERT_NE(table, std::string::npos) << o.out;
  for (const char* column : {"samples/s", "GFLOP/s", "of peak", "over cpu", "right"})
    EXPECT_TRUE(contains(o.out.substr(table), column)) << column;
  EXPECT_TRUE(contains(o.out.substr(table), "\ncpu ")) << o.out;
  EXPECT_FALSE(contains(o.out + o.err, "\x1b")) << "no colour and no live line without a terminal";
}

TEST(Command, quiet_leaves_the_table_alone) {
  const Outcome o = run(tiny_race({"--quiet"}));
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.err, "");
  EXPECT_FALSE(contains(o.out, "Batch [")) << o.out;
  EXPECT_TRUE(contains(o.out, "\ndevice ")) << o.out;
}

TEST(Command, color_by_force_color_and_not_by_no_color) {
  EXPECT_TRUE(contains(run(tiny_race(), nullptr, {"FORCE_COLOR=1"}).out, "\x1b[1m"));
  EXPECT_FALSE(contains(run(tiny_race(), nullptr, {"FORCE_COLOR=1", "NO_COLOR=1"}).out, "\x1b"));
}

TEST(Command, json_is_one_object_and_nothing_else) {
  const Json race = Json::parse(run(tiny_race({"--json"})).out);
  ASSERT_EQ(race.at("devices").size(), 1u);
  const Json& cpu = race.at("devices")[0];
  EXPECT_EQ(cpu.at("device"), "cpu");
  EXPECT_EQ(cpu.at("steps"), 40);
  EXPECT_EQ(cpu.at("speedup_over_cpu"), 1.0);
  EXPECT_TRUE(race.at("complete").get<bool>());
  for (const char* field : {"ms_per_step", "samples_per_s", "gflops", "peak_gflops", "first_loss", "last_loss"})
    EXPECT_GT(cpu.at(field).get<double>(), 0) << field;
  EXPECT_GT(cpu.at("digits_accuracy").get<double>(), 0.1);

  const Json devices = Json::parse(run({"devices", "--json"}).out);
  EXPECT_EQ(devices.at("devices")[0].at("device"), "cpu");
  EXPECT_GT(devices.at("devices")[0].at("peak_gflops").get<double>(), 1);
  EXPECT_GT(devices.at("devices")[0].at("memory_bytes").get<double>(), 1e8);
  EXPECT_TRUE(devices.at("missing").is_array());

  const Json version = Json::parse(run({"--json", "version"}).out);  // before the command, too
  EXPECT_TRUE(version.at("version").is_string());
  EXPECT_TRUE(version.at("compiler").is_string());
}

TEST(Command, bench_reports_what_the_comparison_reads) {
  for (const char* loop : {"captured", "plain", "item"}) {
    const Outcome o = run({"bench", "tiny", "--loop", loop, "--threads", "1", "--json", "--profile"});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(lines_in(o.out), 1u);
    const Json json = Json::parse(o.out);
    EXPECT_EQ(json.at("workload"), "tiny");
    EXPECT_EQ(json.at("dtype"), "f32");
    EXPECT_EQ(json.at("unit"), "ms");
    EXPECT_EQ(json.at("items"), 32);
    EXPECT_EQ(json.at("threads"), 1);
    ASSERT_GE(json.at("samples").size(), 5u);
    for (const Json& sample : json.at("samples")) EXPECT_GE(sample, json.at("value"));
    // Four classes at random: the loss cannot be far from log 4.
    for (const char* loss : {"first_loss", "last_loss"}) EXPECT_NEAR(json.at(loss).get<double>(), std::log(4.0), 0.4);
    EXPECT_FALSE(json.at("profile").empty());
    EXPECT_TRUE(json.at("isa").is_string() && json.at("version").is_string());
  }
}

TEST(Command, ops_are_measured_on_every_device) {
  const Json devices = Json::parse(run({"devices", "--json"}).out).at("devices");
  for (const Json& entry : devices) {
    const std::string device = entry.at("device").get<std::string>();
    const Outcome o =
        run({"bench", "ops", "--device", device, "--size", "32", "--parameters", "100", "--filter", "a", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    const Json json = Json::parse(o.out);
    EXPECT_EQ(json.at("device"), device);
    size_t measured = 0;
    for (const Json& row : json.at("ops")) {
      if (row.contains("missing")) {
        EXPECT_TRUE(contains(row.at("missing").get<std::string>(), device + " has no kernel")) << row;
        continue;
      }
      ++measured;
      EXPECT_GT(row.at("ms").get<double>(), 0) << row;
      const bool product = row.at("op") == "matmul";
      EXPECT_GT(row.at(product ? "gflops" : "gb_per_s").get<double>(), 0) << row;
    }
    EXPECT_GE(measured, device == "cpu" ? json.at("ops").size() : 5u);
  }
  const Outcome text = run({"bench", "ops", "--size", "32", "--filter", "softmax"});
  EXPECT_TRUE(contains(text.out, "softmax")) << text.out;
  EXPECT_EQ(run({"bench", "ops", "--device", "null"}).code, 2);
  EXPECT_EQ(run({"bench", "ops", "--device", "opencl:99"}).code, 3);
  EXPECT_EQ(run({"bench", "tiny", "--device", "opencl:0"}).code, devices.size() > 1 ? 2 : 3);
}

TEST(Command, a_sweep_ends_with_a_conclusion_from_its_numbers) {
  const Outcome text = run({"--sweep", "width", "--inputs", "32", "--batch", "8"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "\n2048 ")) << text.out;
  EXPECT_TRUE(contains(text.out, "cpu: from width 2048 down to 32 the arithmetic shrinks 64-fold")) << text.out;

  const Json json = Json::parse(run({"--sweep", "batch", "--inputs", "32", "--hidden", "16", "--json"}).out);
  EXPECT_EQ(json.at("rows").front().at("batch"), 1);
  EXPECT_EQ(json.at("rows").back().at("batch"), 1024);
  EXPECT_EQ(json.at("conclusions").size(), 1u);
  EXPECT_GE(json.at("costs")[0].at("fixed_ms").get<double>(), 0);
}

TEST(Command, a_diverging_training_is_4) {
  const Outcome o = run(tiny_race({"--lr", "1e30"}));
  EXPECT_EQ(o.code, 4);
  EXPECT_TRUE(contains(o.err, "diverged")) << o.err;
  EXPECT_TRUE(contains(o.err, "--lr")) << o.err;
  EXPECT_EQ(lines_in(o.err), 1u);
}

TEST(Command, a_missed_accuracy_is_5_after_the_table) {
  const Outcome o = run(tiny_race({"--at-least", "1", "--quiet"}));
  EXPECT_EQ(o.code, 5);
  EXPECT_TRUE(contains(o.out, "\ncpu ")) << o.out;
  EXPECT_TRUE(contains(o.err, "100.0 %")) << o.err;
}

TEST(Command, too_little_memory_is_6) {
  const Outcome o = run({"--inputs", "1000000", "--hidden", "10000000", "--batches", "1", "--no-digits"});
  EXPECT_EQ(o.code, 6);
  EXPECT_TRUE(contains(o.err, "memory")) << o.err;
}

TEST(Command, ctrl_c_ends_with_what_there_is) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    bool sent = false;
    const Outcome o = run({"race", "--inputs", "20", "--hidden", "16", "--batch", "1", "--batches", "1000000"},
                          [&, signal = signal](pid_t child, const std::string&, Pipe&) {
                            // "Training on cpu" was printed, so the handlers are in place.
                            if (!std::exchange(sent, true)) kill(child, signal);
                          });
    EXPECT_EQ(o.code, code);
    EXPECT_TRUE(contains(o.err, "Stopped by signal")) << o.err;
  }
}

TEST(Command, a_second_ctrl_c_ends_it_at_once) {
  bool sent = false;
  // One step of this takes far longer than the test may wait.
  const Outcome o = run({"race", "--inputs", "4000", "--hidden", "4000", "--batch", "4000", "--batches", "1000000"},
                        [&](pid_t child, const std::string&, Pipe&) {
                          if (std::exchange(sent, true)) return;
                          kill(child, SIGINT);
                          usleep(50'000);  // two signals at once would arrive as one
                          kill(child, SIGINT);
                        });
  EXPECT_EQ(o.code, 130);
  EXPECT_FALSE(contains(o.out, "\ndevice ")) << o.out;
}

TEST(Command, a_closed_output_ends_it_with_141_and_a_sentence) {
  const Outcome o = run({"race", "--inputs", "20", "--hidden", "16", "--batches", "100000"},
                        [](pid_t, const std::string&, Pipe& out) { out.close_end(0); });
  EXPECT_EQ(o.code, 141);
  EXPECT_TRUE(contains(o.err, "output was closed")) << o.err;
  EXPECT_EQ(lines_in(o.err), 1u);
}

TEST(Command, digits_are_read_right_97_times_of_100) {
  double sum = 0;
  for (const char* seed : {"1", "2", "3", "4", "5"}) {
    const Outcome o = run({"race", "--inputs", "8", "--batches", "2", "--json", "--seed", seed});
    ASSERT_EQ(o.code, 0) << o.err;
    sum += Json::parse(o.out).at("devices")[0].at("digits_accuracy").get<double>();
  }
  EXPECT_GE(sum / 5, 0.97);
}

}  // namespace
}  // namespace outrace
