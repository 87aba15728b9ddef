// Limits that a container or a batch system sets through Linux control groups, version 1 or 2.
#pragma once
#include <cstdint>
#include <string>

namespace outrace {

struct CgroupLimits {
  int cpus = 0;              // CPU quota, rounded up; 0: none
  int64_t memory_bytes = 0;  // 0: none
};

// Reads the limits of the group named in `membership` (the text of /proc/self/cgroup) and of all groups above it, below
// the mount point `root`. A file that is missing or unreadable limits nothing.
CgroupLimits read_cgroup_limits(const std::string& membership, const std::string& root = "/sys/fs/cgroup");

}  // namespace outrace
