// Distinguishes the queries of cpuinfo, through which XNNPACK asks, from those of any other library.
#pragma once

#include <dlfcn.h>

// Whether the code at `address` belongs to the library that has cpuinfo.
inline bool is_in_cpuinfo(void* address) {
  Dl_info asking{}, cpuinfo{};
  void* const initialize = dlsym(RTLD_DEFAULT, "cpuinfo_initialize");
  return initialize != nullptr && dladdr(initialize, &cpuinfo) != 0 && dladdr(address, &asking) != 0 &&
         asking.dli_fbase == cpuinfo.dli_fbase;
}
