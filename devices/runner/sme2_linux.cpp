// Linux and Android: XNNPACK asks cpuinfo, cpuinfo asks getauxval(AT_HWCAP2). The program exports a getauxval
// of its own, which the dynamic loader prefers to the C library's.
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
bool asked = false;
bool told = false;

void read_request(int argc, char** argv, char**) { hide = asks_sme2_off(argc, argv); }

// Runs before the constructors of all libraries, hence before anybody can ask.
[[gnu::section(".preinit_array"), gnu::used]] void (*const read_request_first)(int, char**, char**) = read_request;

}  // namespace

extern "C" unsigned long getauxval(unsigned long type) noexcept {
  unsigned long answer = __getauxval(type);
  if (type != AT_HWCAP2) return answer;
  if (hide) answer &= ~kSmeFamily;
  asked = true;
  told = (answer & kSme2) != 0;
  return answer;
}

bool sme2_hardware() { return (__getauxval(AT_HWCAP2) & kSme2) != 0; }
bool sme2_asked() { return asked; }
bool sme2_told() { return told; }

#else  // no SME2 on this architecture

bool sme2_hardware() { return false; }
bool sme2_asked() { return true; }
bool sme2_told() { return false; }

#endif
