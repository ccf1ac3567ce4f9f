// What the sources need to know of a platform that has no file of its own.
#pragma once

#include <sys/ucontext.h>

#include <cstdint>

// The platform's name in devices/platform.py, and where a thread was when a signal interrupted it.
#if defined(__APPLE__)

constexpr const char* kPlatform = "macos-arm64";
inline uintptr_t program_counter(const ucontext_t& context) {
  return __darwin_arm_thread_state64_get_pc(context.uc_mcontext->__ss);
}

#elif defined(__aarch64__)

constexpr const char* kPlatform = "linux-aarch64";
inline uintptr_t program_counter(const ucontext_t& context) { return context.uc_mcontext.pc; }

#elif defined(__x86_64__)

constexpr const char* kPlatform = "linux-x86_64";
inline uintptr_t program_counter(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
}

#else
#error "no row for this processor in devices/platform.py"
#endif
