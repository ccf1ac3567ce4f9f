// Tells the queries of cpuinfo, through which XNNPACK asks, from those of any other library.
#pragma once

#include <dlfcn.h>

// Whether the code at `address` belongs to the library that has cpuinfo.
inline bool is_in_cpuinfo(void* address) {
  Dl_info asking{}, cpuinfo{};
  void* const known = dlsym(RTLD_DEFAULT, "cpuinfo_initialize");
  return known != nullptr && dladdr(known, &cpuinfo) != 0 && dladdr(address, &asking) != 0 &&
         asking.dli_fbase == cpuinfo.dli_fbase;
}
