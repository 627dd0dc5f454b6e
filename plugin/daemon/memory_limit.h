// Limits on the memory of the daemon, and of one question.
#ifndef LOADLINE_PLUGIN_DAEMON_MEMORY_LIMIT_H_
#define LOADLINE_PLUGIN_DAEMON_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace loadline {

// Bytes; 0: not limited.
struct MemoryLimits {
  int64_t container = 0;      // of the control group: what the process holds
  int64_t address_space = 0;  // RLIMIT_AS: what is mapped, several times as much
};

// Reads what holds for this process. `cgroup_file`: "max" or a number of bytes; a missing file limits
// nothing.
MemoryLimits ReadMemoryLimits(const std::string& cgroup_file = "/sys/fs/cgroup/memory.max");

// Returns the memory that one question may take beside the view by default: 256 MiB, but at most a quarter of
// what a container has, and a thirty-second of an address space. At least 16 MiB.
int64_t DefaultQuestionBytes(const MemoryLimits& limits);

// The default of what one view may take beside ordinary objects: half of that, as a full list is in memory
// beside the view that it replaces. In a container of much memory 256 MiB as well. At least 8 MiB.
int64_t DefaultViewBytes(const MemoryLimits& limits);

// Saves address space if that of the process is limited, since a mapping that fails ends the process: all
// threads share one arena of the allocator, as each further one maps 128 MiB for a moment and 64 MiB from
// then on, and their stacks have 2 MiB in place of 8. Threads wait for each other more often then. Called
// before the first thread starts.
void SaveAddressSpace(const MemoryLimits& limits);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_MEMORY_LIMIT_H_
