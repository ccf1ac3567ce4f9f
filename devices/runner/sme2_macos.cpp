// macOS: XNNPACK calls cpuinfo, cpuinfo calls sysctlbyname("hw.optional.arm.FEAT_SME2"). This file is a separate
// library, because dyld lets a library, but not a program, replace a function for all other images. Calls from this
// file still reach the system. It is built and its structure is checked, but it has not run on a Mac yet;
// check_sme2_effective in main.cpp refuses to measure if it has no effect.
#include "sme2.h"

#include <crt_externs.h>
#include <sys/sysctl.h>

#include <cstring>

#include "sme2_request.h"

namespace {

constexpr const char* kSme2 = "hw.optional.arm.FEAT_SME2";
constexpr const char* kSmeFamily = "hw.optional.arm.FEAT_SME";  // also FEAT_SME2, FEAT_SME_F16F16, ...

bool queried = false;
bool told = false;

int answer(const char* name, void* value, size_t* size, void* new_value, size_t new_size) {
  const int status = sysctlbyname(name, value, size, new_value, new_size);
  if (status != 0 || value == nullptr || std::strncmp(name, kSmeFamily, std::strlen(kSmeFamily)) != 0) return status;
  if (requests_sme2_off(*_NSGetArgc(), *_NSGetArgv())) std::memset(value, 0, *size);
  if (std::strcmp(name, kSme2) == 0) {
    queried = true;
    int reported = 0;
    std::memcpy(&reported, value, *size < sizeof reported ? *size : sizeof reported);
    told = reported != 0;
  }
  return status;
}

struct Interpose {
  int (*replacement)(const char*, void*, size_t*, void*, size_t);
  int (*original)(const char*, void*, size_t*, void*, size_t);
};
[[gnu::section("__DATA,__interpose"), gnu::used]] const Interpose interpose = {answer, sysctlbyname};

}  // namespace

bool sme2_hardware() {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(kSme2, &value, &size, nullptr, 0) == 0 && value != 0;
}

bool sme2_queried() { return queried; }
bool sme2_told() { return told; }
