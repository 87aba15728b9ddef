// The machine's description, the choice of the instruction set, control group limits and typed environment variables.
#include "outrace/core/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "outrace/core/cgroup.h"
#include "outrace/core/env.h"
#include "outrace/core/error.h"

namespace outrace {
namespace {

template <class Fn>
std::string option_error(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::option);
    return e.what();
  }
  return "no error";
}

TEST(CpuInfo, DescribesThisMachine) {
  const CpuInfo& info = cpu_info();
  EXPECT_FALSE(info.model.empty());
  EXPECT_GE(info.cores, 1);
  EXPECT_LE(info.cores, info.logical_cpus);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    EXPECT_LE(info.cores, CPU_COUNT(&set));
  }
  EXPECT_GE(info.l1d_bytes, 8 << 10);
  EXPECT_GE(info.l2_bytes, info.l1d_bytes);
  EXPECT_GT(info.memory_bytes, 64 << 20);
  EXPECT_TRUE(info.supports(info.best_isa));
  EXPECT_EQ(info.has("avx2"), info.supports(Isa::avx2) || info.supports(Isa::avx512));
  EXPECT_FALSE(info.has("no such feature"));
}

TEST(CpuInfo, ActiveIsaCanBeChosenAmongThoseItHas) {
  const Isa before = active_isa();
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::neon, Isa::generic}) {
    EXPECT_EQ(parse_isa(name_of(isa)), isa);
    if (cpu_info().supports(isa)) {
      set_active_isa(isa);
      EXPECT_EQ(active_isa(), isa);
      if (isa == Isa::avx2 || isa == Isa::avx512) {
        EXPECT_EQ(wants_avx512(), isa == Isa::avx512);
      }
    } else {
      const std::string text = option_error([&] { set_active_isa(isa); });
      EXPECT_TRUE(text.starts_with("[isa] this CPU lacks " + std::string(name_of(isa)) + "; it has: ")) << text;
    }
  }
  set_active_isa(before);
  EXPECT_TRUE(
      option_error([] { parse_isa("sse9"); }).starts_with("[isa] unknown instruction set 'sse9'; this CPU has: "));
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "outrace_cgroup_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(Cgroup, Version2TakesTheTightestOfTheGroupAndThoseAbove) {
  Folder root;
  root.write("a/cpu.max", "250000 100000\n");
  root.write("a/b/cpu.max", "max 100000\n");
  root.write("a/memory.max", "max\n");
  root.write("a/b/memory.max", "1073741824\n");
  const CgroupLimits b = read_cgroup_limits("0::/a/b\n", root.path());
  EXPECT_EQ(b.cpus, 3) << "2.5 CPUs round up";
  EXPECT_EQ(b.memory_bytes, 1 << 30);
  const CgroupLimits a = read_cgroup_limits("0::/a\n", root.path());
  EXPECT_EQ(a.memory_bytes, 0);
  root.write("cpu.max", "100000 100000\n");
  EXPECT_EQ(read_cgroup_limits("0::/a/b\n", root.path()).cpus, 1);
  EXPECT_EQ(read_cgroup_limits("0::/\n", root.path()).cpus, 1);
}

TEST(Cgroup, Version1) {
  Folder root;
  root.write("cpu/job/cpu.cfs_quota_us", "400000\n");
  root.write("cpu/job/cpu.cfs_period_us", "100000\n");
  root.write("cpu/cpu.cfs_quota_us", "-1\n");
  root.write("cpu/cpu.cfs_period_us", "100000\n");
  root.write("memory/job/memory.limit_in_bytes", "2147483648\n");
  root.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits job = read_cgroup_limits("5:cpu,cpuacct:/job\n3:memory:/job\n1:name=systemd:/x\n", root.path());
  EXPECT_EQ(job.cpus, 4);
  EXPECT_EQ(job.memory_bytes, int64_t{1} << 31);
  const CgroupLimits top = read_cgroup_limits("5:cpu,cpuacct:/\n3:memory:/\n", root.path());
  EXPECT_EQ(top.cpus, 0);
  EXPECT_EQ(top.memory_bytes, 0);
}

TEST(Cgroup, NonsenseLimitsNothing) {
  Folder root;
  root.write("cpu.max", "lots of it\n");
  root.write("memory.max", "-5\n");
  for (const char* text : {"", "\n", "0", "0:", "::::", "0::/\n", "0::/no/such/group"}) {
    const CgroupLimits limits = read_cgroup_limits(text, root.path());
    EXPECT_EQ(limits.cpus, 0) << text;
    EXPECT_EQ(limits.memory_bytes, 0) << text;
  }
}

TEST(Env, TypedReads) {
  const char* name = "OUTRACE_TEST_VARIABLE";
  unsetenv(name);
  EXPECT_EQ(env_string(name, "x"), "x");
  EXPECT_EQ(env_int(name, 5, 0, 9), 5);
  setenv(name, "", 1);
  EXPECT_EQ(env_string(name, "x"), "x");
  EXPECT_EQ(env_int(name, 5, 0, 9), 5);
  setenv(name, "7", 1);
  EXPECT_EQ(env_string(name), "7");
  EXPECT_EQ(env_int(name, 5, 0, 9), 7);
  for (const char* bad : {"10", "-1", "7x", "seven", " 7", "99999999999999999999"}) {
    setenv(name, bad, 1);
    EXPECT_EQ(option_error([&] { env_int(name, 5, 0, 9); }),
              "[env] OUTRACE_TEST_VARIABLE must be a whole number from 0 to 9; it is '" + std::string(bad) + "'");
  }
  unsetenv(name);
}

TEST(Env, DebugLevel) {
  const int before = debug_level();
  set_debug_level(2);
  EXPECT_EQ(debug_level(), 2);
  EXPECT_EQ(option_error([] { set_debug_level(4); }), "[debug] the level must be from 0 to 3; got 4");
  EXPECT_EQ(debug_level(), 2);
  set_debug_level(before);
}

}  // namespace
}  // namespace outrace
