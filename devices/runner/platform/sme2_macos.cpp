// macOS: XNNPACK calls cpuinfo, cpuinfo calls sysctlbyname("hw.optional.arm.FEAT_SME2"). This file is a separate
// library, because dyld lets a library, but not a program, replace a function for all other images. Calls from this
// file still reach the system. It is built and its structure is checked, but it has not run on a Mac yet;
// check_sme_effective in main.cpp refuses to measure if it has no effect.
#include "sme2.h"

#include <crt_externs.h>
#include <sys/sysctl.h>

#include <cstring>

#include "cpuinfo_caller.h"
#include "sme2_request.h"

namespace {

constexpr const char* kSme = "hw.optional.arm.FEAT_SME";
constexpr const char* kSme2 = "hw.optional.arm.FEAT_SME2";
// Beginnings of names: all of SME, and what came with SME2.
constexpr const char* kSmeFamily[] = {kSme, "hw.optional.arm.SME_"};
constexpr const char* kSme2AndLater[] = {kSme2, "hw.optional.arm.FEAT_SME_B16B16", "hw.optional.arm.FEAT_SME_F16F16",
                                         "hw.optional.arm.SME_I16I32", "hw.optional.arm.SME_BI32I32"};

bool reported_sme = false;
std::optional<bool> reported_sme2;

template <size_t kCount>
bool begins_with_one_of(const char* name, const char* const (&beginnings)[kCount]) {
  for (const char* beginning : beginnings) {
    if (std::strncmp(name, beginning, std::strlen(beginning)) == 0) return true;
  }
  return false;
}

bool hides(const char* name) {
  switch (requested_sme(*_NSGetArgc(), *_NSGetArgv())) {
    case Sme::none: return begins_with_one_of(name, kSmeFamily);
    case Sme::sme1: return begins_with_one_of(name, kSme2AndLater);
    default: return false;
  }
}

int answer(const char* name, void* value, size_t* size, void* new_value, size_t new_size) {
  const int status = sysctlbyname(name, value, size, new_value, new_size);
  if (status != 0 || value == nullptr || !begins_with_one_of(name, kSmeFamily)) return status;
  if (hides(name)) std::memset(value, 0, *size);
  if (!is_in_cpuinfo(__builtin_return_address(0))) return status;
  int bit = 0;
  std::memcpy(&bit, value, *size < sizeof bit ? *size : sizeof bit);
  if (std::strcmp(name, kSme) == 0) reported_sme = bit != 0;
  if (std::strcmp(name, kSme2) == 0) reported_sme2 = bit != 0;
  return status;
}

struct Interpose {
  int (*replacement)(const char*, void*, size_t*, void*, size_t);
  int (*original)(const char*, void*, size_t*, void*, size_t);
};
[[gnu::section("__DATA,__interpose"), gnu::used]] const Interpose interpose = {answer, sysctlbyname};

bool has(const char* name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}

}  // namespace

Sme sme_hardware() { return has(kSme2) ? Sme::sme2 : has(kSme) ? Sme::sme1 : Sme::none; }

std::optional<Sme> sme_reported() {
  if (!reported_sme2) return std::nullopt;
  return *reported_sme2 ? Sme::sme2 : reported_sme ? Sme::sme1 : Sme::none;
}
