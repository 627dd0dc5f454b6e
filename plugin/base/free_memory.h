// Memory that is free, but that the allocator keeps.
#ifndef LOADLINE_PLUGIN_BASE_FREE_MEMORY_H_
#define LOADLINE_PLUGIN_BASE_FREE_MEMORY_H_

#include <malloc.h>

// The daemon has mimalloc, a process with the shared object in it usually has not.
extern "C" void mi_collect(bool force) __attribute__((weak));

namespace loadline {

// Gives the system back what this thread has freed, and what others have freed of it. mimalloc leaves a page
// to the thread that took it, so that each has to do so for itself. Cost: O(pages), microseconds where little
// was freed.
inline void ReturnFreeMemory() {
  if (mi_collect != nullptr) {
    mi_collect(/*force=*/true);
    return;
  }
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_BASE_FREE_MEMORY_H_
