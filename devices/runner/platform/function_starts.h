// Checks whether dladdr's symbol belongs to the function at an address and is not only the nearest one before it.
#pragma once

#include <dlfcn.h>

#include <cstdint>

// Returns where the function at `address` begins, 0 if it is before the first. The table contains the starts as
// differences, the first relative to `base`, in DWARF's base-128 encoding; a difference of 0 ends it.
inline uintptr_t function_start(const uint8_t* table, const uint8_t* end, uintptr_t base, uintptr_t address) {
  uintptr_t start = 0;
  while (table < end) {
    uintptr_t difference = 0;
    for (int shift = 0; table < end; shift += 7) {
      difference |= static_cast<uintptr_t>(*table & 0x7f) << shift;
      if ((*table++ & 0x80) == 0) break;
    }
    base += difference;
    if (difference == 0 || base > address) break;
    start = base;
  }
  return start;
}

#if defined(__APPLE__)

#include <mach-o/loader.h>

#include <cstring>

// Symbols of a Mach-O file have no sizes, and its private functions have no symbols: LC_FUNCTION_STARTS is needed.
inline bool is_in_function(uintptr_t address, const Dl_info& info) {
  const auto* header = static_cast<const mach_header_64*>(info.dli_fbase);
  const auto* command = reinterpret_cast<const load_command*>(header + 1);
  const linkedit_data_command* starts = nullptr;
  const segment_command_64 *text = nullptr, *linkedit = nullptr;
  for (uint32_t i = 0; i < header->ncmds; ++i) {
    const auto* segment = reinterpret_cast<const segment_command_64*>(command);
    if (command->cmd == LC_FUNCTION_STARTS) starts = reinterpret_cast<const linkedit_data_command*>(command);
    else if (command->cmd == LC_SEGMENT_64 && std::strcmp(segment->segname, SEG_TEXT) == 0) text = segment;
    else if (command->cmd == LC_SEGMENT_64 && std::strcmp(segment->segname, SEG_LINKEDIT) == 0) linkedit = segment;
    command = reinterpret_cast<const load_command*>(reinterpret_cast<const char*>(command) + command->cmdsize);
  }
  if (starts == nullptr || text == nullptr || linkedit == nullptr) return false;
  const auto base = reinterpret_cast<uintptr_t>(header);
  const auto* table =
      reinterpret_cast<const uint8_t*>(base + linkedit->vmaddr - text->vmaddr + starts->dataoff - linkedit->fileoff);
  return function_start(table, table + starts->datasize, base, address) == reinterpret_cast<uintptr_t>(info.dli_saddr);
}

#else

// Symbols of an ELF file have sizes, and the C library's dladdr checks them.
inline bool is_in_function(uintptr_t, const Dl_info&) { return true; }

#endif
