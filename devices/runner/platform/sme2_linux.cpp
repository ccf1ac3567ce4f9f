// Linux and Android: XNNPACK calls cpuinfo, cpuinfo calls getauxval(AT_HWCAP2). The program exports another
// getauxval, which the dynamic loader prefers to the C library's.
#include "sme2.h"

#if defined(__aarch64__)

#include <sys/auxv.h>

#include "cpuinfo_caller.h"
#include "sme2_request.h"

extern "C" unsigned long __getauxval(unsigned long type);

namespace {

constexpr unsigned long bits(int first, int last) { return ((1UL << (last - first + 1)) - 1) << first; }

constexpr unsigned long kSme = 1UL << 23;
constexpr unsigned long kSme2 = 1UL << 37;
constexpr unsigned long kSme2AndLater = bits(37, 42) | bits(57, 62);
constexpr unsigned long kSmeFamily = bits(23, 30) | kSme2AndLater;

Sme limit = Sme::sme2;
std::optional<Sme> reported;

void read_request(int argc, char** argv, char**) { limit = requested_sme(argc, argv); }

// Runs before the constructors of all libraries and therefore before the first query.
[[gnu::section(".preinit_array"), gnu::used]] void (*const read_request_first)(int, char**, char**) = read_request;

Sme sme_level(unsigned long hwcap2) { return hwcap2 & kSme2 ? Sme::sme2 : hwcap2 & kSme ? Sme::sme1 : Sme::none; }

}  // namespace

extern "C" unsigned long getauxval(unsigned long type) noexcept {
  unsigned long answer = __getauxval(type);
  if (type != AT_HWCAP2) return answer;
  if (limit == Sme::none) answer &= ~kSmeFamily;
  if (limit == Sme::sme1) answer &= ~kSme2AndLater;
  if (is_in_cpuinfo(__builtin_return_address(0))) reported = sme_level(answer);
  return answer;
}

Sme sme_hardware() { return sme_level(__getauxval(AT_HWCAP2)); }
std::optional<Sme> sme_reported() { return reported; }

#elif defined(__x86_64__)  // does not have SME

Sme sme_hardware() { return Sme::none; }
std::optional<Sme> sme_reported() { return Sme::none; }

#endif
