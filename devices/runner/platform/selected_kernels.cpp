// XNNPACK's operators keep pointers to the micro-kernels that were selected for them. On Linux the names of XNNPACK's own
// functions are hidden, but those that wrap a kernel of KleidiAI call it through the procedure linkage table (PLT) of the
// library, whose relocations have its name.
#include "selected_kernels.h"

#include <cstring>

#include "../errors.h"

static constexpr const char* kFlag = "--selected_kernels_path";

#if defined(__aarch64__) && defined(__linux__)

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "../json.h"

extern "C" {
// As in XNNPACK's xnnpack.h, which the wheel does not ship.
struct xnn_allocator {
  void* context;
  void* (*allocate)(void* context, size_t size);
  void* (*reallocate)(void* context, void* pointer, size_t size);
  void (*deallocate)(void* context, void* pointer);
  void* (*aligned_allocate)(void* context, size_t alignment, size_t size);
  void (*aligned_deallocate)(void* context, void* pointer);
};
int xnn_initialize(const xnn_allocator* allocator);
}

namespace {

// Larger blocks are packed weights.
constexpr size_t kMaxBlockBytes = 1 << 18;
constexpr size_t kMaxBlocks = 1 << 16;

struct Block {
  const void* start;
  size_t bytes;
};

// Plain memory: used before the constructors of the C++ library.
Block blocks[kMaxBlocks];
size_t block_count = 0;
std::mutex guard;
bool is_tracking = false;

void* remember(void* start, size_t bytes) {
  const std::lock_guard<std::mutex> lock(guard);
  if (start != nullptr && bytes <= kMaxBlockBytes && block_count < kMaxBlocks) blocks[block_count++] = {start, bytes};
  return start;
}

void forget(const void* start) {
  const std::lock_guard<std::mutex> lock(guard);
  Block* const end = blocks + block_count;
  Block* const block = std::find_if(blocks, end, [start](const Block& each) { return each.start == start; });
  if (block != end) *block = blocks[--block_count];
}

void* allocate(void*, size_t bytes) { return remember(std::malloc(bytes), bytes); }

void* reallocate(void*, void* start, size_t bytes) {
  forget(start);
  return remember(std::realloc(start, bytes), bytes);
}

void* allocate_aligned(void*, size_t alignment, size_t bytes) {
  void* start = nullptr;
  if (posix_memalign(&start, alignment, bytes) != 0) return nullptr;
  return remember(start, bytes);
}

void deallocate(void*, void* start) {
  forget(start);
  std::free(start);
}

// The executable part of a library, and its relocations.
struct Library {
  uintptr_t start = 0, end = 0, base = 0;
  const ElfW(Rela) * relocations = nullptr;
  size_t relocation_count = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;

  bool has(uintptr_t address) const { return address >= start && address < end && address % 4 == 0; }
};

Library xnnpack() {
  Library library;
  Dl_info info{};
  link_map* map = nullptr;
  void** const place = reinterpret_cast<void**>(&map);
  if (dladdr1(reinterpret_cast<void*>(&xnn_initialize), &info, place, RTLD_DL_LINKMAP) == 0 || map == nullptr) {
    throw RunError("cannot find the library of XNNPACK");
  }
  library.base = map->l_addr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_JMPREL) library.relocations = reinterpret_cast<const ElfW(Rela)*>(value);
    if (entry->d_tag == DT_PLTRELSZ) library.relocation_count = value / sizeof(ElfW(Rela));
    if (entry->d_tag == DT_SYMTAB) library.symbols = reinterpret_cast<const ElfW(Sym)*>(value);
    if (entry->d_tag == DT_STRTAB) library.names = reinterpret_cast<const char*>(value);
  }
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(library.base);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(library.base + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
    library.start = library.base + segments[i].p_vaddr;
    library.end = library.start + segments[i].p_memsz;
  }
  return library;
}

uint32_t instruction(uintptr_t at) { return *reinterpret_cast<const uint32_t*>(at); }

// Returns where `B` or `BL` at `at` goes; empty for any other instruction.
std::optional<uintptr_t> branch_target(uintptr_t at) {
  const uint32_t code = instruction(at);
  if ((code & 0x7c000000) != 0x14000000) return std::nullopt;
  const int64_t words = static_cast<int32_t>(code << 6) >> 6;
  return at + static_cast<uintptr_t>(words * 4);
}

// Returns the name behind an entry of the PLT: `adrp x16, page; ldr x17, [x16, offset]` reads the relocated slot.
std::string name_behind_plt(const Library& library, uintptr_t at) {
  if (!library.has(at) || !library.has(at + 4)) return "";
  const uint32_t adrp = instruction(at), load = instruction(at + 4);
  if ((adrp & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211) return "";
  const int64_t pages = (static_cast<int64_t>(static_cast<int32_t>(adrp << 8) >> 13) * 4) | ((adrp >> 29) & 3);
  const uintptr_t slot = (at & ~uintptr_t{0xfff}) + static_cast<uintptr_t>(pages * 4096) + ((load >> 10) & 0xfff) * 8;
  for (size_t i = 0; i < library.relocation_count; ++i) {
    const ElfW(Rela)& each = library.relocations[i];
    if (library.base + each.r_offset == slot) return library.names + library.symbols[ELF64_R_SYM(each.r_info)].st_name;
  }
  return "";
}

bool is_kernel(const std::string& name) { return name.rfind("kai_run_", 0) == 0 || name.rfind("kai_kernel_", 0) == 0; }

// Returns the kernel of KleidiAI that the function at `start` calls directly; empty if it calls none.
std::string wrapped_kernel(const Library& library, uintptr_t start) {
  constexpr uintptr_t kLongest = 1024;
  constexpr uint32_t kReturn = 0xd65f03c0, kLink = 0x80000000;
  for (uintptr_t at = start; library.has(at) && at < start + kLongest && instruction(at) != kReturn; at += 4) {
    const std::optional<uintptr_t> target = branch_target(at);
    if (!target) continue;
    const std::string name = name_behind_plt(library, *target);
    if (is_kernel(name)) return name;
    const bool leaves = !(instruction(at) & kLink) && (*target < start || *target >= start + kLongest);
    if (leaves) break;
  }
  return "";
}

std::set<uintptr_t> pointers_into(const Library& library) {
  const std::lock_guard<std::mutex> lock(guard);
  std::set<uintptr_t> pointers;
  for (const Block* block = blocks; block < blocks + block_count; ++block) {
    const auto* words = static_cast<const uintptr_t*>(block->start);
    for (size_t i = 0; i < block->bytes / sizeof(uintptr_t); ++i) {
      if (library.has(words[i])) pointers.insert(words[i]);
    }
  }
  return pointers;
}

}  // namespace

bool can_list_selected_kernels() { return true; }

void track_operators(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) is_tracking |= std::strncmp(argv[i], kFlag, std::strlen(kFlag)) == 0;
  if (!is_tracking) return;
  static const xnn_allocator allocator = {nullptr, allocate, reallocate, deallocate, allocate_aligned, deallocate};
  is_tracking = xnn_initialize(&allocator) == 0;
}

std::string selected_kernels_json() {
  if (!is_tracking || block_count == 0) throw RunError(std::string(kFlag) + ": XNNPACK did not take the allocator");
  const Library library = xnnpack();
  std::set<std::string> names;
  size_t unnamed = 0;
  for (const uintptr_t pointer : pointers_into(library)) {
    const std::string name = wrapped_kernel(library, pointer);
    if (name.empty()) ++unnamed;
    else names.insert(name);
  }
  const std::vector<std::string> selected(names.begin(), names.end());
  return JsonObject().add("selected", selected).add("unnamed", unnamed).text() + "\n";
}

#else

bool can_list_selected_kernels() { return false; }
void track_operators(int, char**) {}
std::string selected_kernels_json() { throw RunError(std::string(kFlag) + " is possible on arm64 Linux and Android only"); }

#endif
