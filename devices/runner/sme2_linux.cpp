// Linux and Android: XNNPACK calls cpuinfo, cpuinfo calls getauxval(AT_HWCAP2). The program exports another
// getauxval, which the dynamic loader prefers to the C library's.
#include "sme2.h"

#if defined(__aarch64__)

#include <sys/auxv.h>

#include "sme2_request.h"

extern "C" unsigned long __getauxval(unsigned long type);

namespace {

constexpr unsigned long bits(int first, int last) { return ((1UL << (last - first + 1)) - 1) << first; }

constexpr unsigned long kSme2 = 1UL << 37;
constexpr unsigned long kSmeFamily = bits(23, 30) | bits(37, 42) | bits(57, 62);

bool hide = false;
bool queried = false;
bool told = false;

void read_request(int argc, char** argv, char**) { hide = requests_sme2_off(argc, argv); }

// Runs before the constructors of all libraries and therefore before the first query.
[[gnu::section(".preinit_array"), gnu::used]] void (*const read_request_first)(int, char**, char**) = read_request;

}  // namespace

extern "C" unsigned long getauxval(unsigned long type) noexcept {
  unsigned long answer = __getauxval(type);
  if (type != AT_HWCAP2) return answer;
  if (hide) answer &= ~kSmeFamily;
  queried = true;
  told = (answer & kSme2) != 0;
  return answer;
}

bool sme2_hardware() { return (__getauxval(AT_HWCAP2) & kSme2) != 0; }
bool sme2_queried() { return queried; }
bool sme2_told() { return told; }

#else  // this architecture does not have SME2

bool sme2_hardware() { return false; }
bool sme2_queried() { return true; }
bool sme2_told() { return false; }

#endif
