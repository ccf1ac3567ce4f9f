// XNNPACK calls each kernel of KleidiAI through a slot with its address, which the dynamic loader fills. Here each slot
// gets the address of a stub that counts the call and goes on to the kernel. Kernels of XNNPACK have no slot.
#include "kernel_counts.h"

#include "../errors.h"

#if defined(__aarch64__) && defined(__linux__)

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "../json.h"
#include "../stats.h"

extern "C" {

int xnn_initialize(const void* allocator);

// The layouts are those of the assembly below.
struct KernelCounter {
  std::atomic<uint64_t> calls;
  uintptr_t kernel;
  std::atomic<uint64_t> ticks;
  uint64_t unused;
};
struct OpenCall {
  KernelCounter* counter;
  uintptr_t return_address;
  uint64_t start_ticks;
  uint64_t unused;
};
struct OpenCalls {
  uint64_t count;
  uint64_t unused[3];
  OpenCall calls[16];
};
static_assert(sizeof(KernelCounter) == 32 && sizeof(OpenCall) == 32 && sizeof(OpenCalls) == 17 * 32);

[[gnu::visibility("hidden"), gnu::used]] KernelCounter kernel_counters[256];
[[gnu::visibility("hidden"), gnu::used]] thread_local OpenCalls open_kernel_calls;
[[gnu::visibility("hidden")]] extern const char kernel_stubs[];
}

// At the first instruction of a function, x9 to x17 are free; arguments, x18, the stack and all vector registers stay as
// they are. A kernel may take arguments from the stack, so nothing can be pushed: the return address waits in the thread's
// list of open calls, and the kernel returns to kernel_returned. A call deeper than the list is counted and not timed.
asm(R"(
        .text
        .balign 4
        .hidden kernel_stubs
        .globl kernel_stubs
kernel_stubs:
        .set    number, 0
        .rept   256
        mov     x17, #number
        b       kernel_called
        .set    number, number + 1
        .endr

        .macro  open_calls_of_thread to
        mrs     \to, tpidr_el0
        add     \to, \to, #:tprel_hi12:open_kernel_calls, lsl #12
        add     \to, \to, #:tprel_lo12_nc:open_kernel_calls
        .endm

        .macro  add_atomically amount, at
1:      ldxr    x9, [\at]
        add     x9, x9, \amount
        stxr    w10, x9, [\at]
        cbnz    w10, 1b
        .endm

kernel_called:
        adrp    x16, kernel_counters
        add     x16, x16, :lo12:kernel_counters
        add     x16, x16, x17, lsl #5
        add_atomically #1, x16
        open_calls_of_thread x11
        ldr     x12, [x11]
        cmp     x12, #16
        b.hs    2f
        add     x13, x11, x12, lsl #5
        add     x12, x12, #1
        str     x12, [x11]
        stp     x16, x30, [x13, #32]
        adr     x30, kernel_returned
        mrs     x14, cntvct_el0
        str     x14, [x13, #48]
2:      ldr     x16, [x16, #8]
        br      x16

kernel_returned:
        mrs     x14, cntvct_el0
        open_calls_of_thread x11
        ldr     x12, [x11]
        sub     x12, x12, #1
        str     x12, [x11]
        add     x13, x11, x12, lsl #5
        ldp     x16, x30, [x13, #32]
        ldr     x15, [x13, #48]
        sub     x14, x14, x15
        add     x16, x16, #16
        add_atomically x14, x16
        ret
)");

namespace {

constexpr size_t kMaxKernels = std::size(kernel_counters) - 1;  // the last one measures the cost of counting
constexpr size_t kStubBytes = 8;

uintptr_t stub(size_t number) { return reinterpret_cast<uintptr_t>(kernel_stubs) + number * kStubBytes; }

struct Library {
  uintptr_t base = 0;
  uintptr_t read_only_start = 0, read_only_end = 0;  // what the loader makes read-only after it has filled the slots
  std::vector<std::pair<const ElfW(Rela)*, size_t>> relocations;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

void read_dynamic_section(Library& library, const ElfW(Dyn) * entries) {
  std::map<ElfW(Sxword), uintptr_t> values;
  for (const ElfW(Dyn)* entry = entries; entry->d_tag != DT_NULL; ++entry) values[entry->d_tag] = entry->d_un.d_ptr;
  library.symbols = reinterpret_cast<const ElfW(Sym)*>(values[DT_SYMTAB]);
  library.names = reinterpret_cast<const char*>(values[DT_STRTAB]);
  for (const auto& [table, bytes] : {std::pair(DT_JMPREL, DT_PLTRELSZ), std::pair(DT_RELA, DT_RELASZ)}) {
    library.relocations.emplace_back(reinterpret_cast<const ElfW(Rela)*>(values[table]),
                                     values[bytes] / sizeof(ElfW(Rela)));
  }
}

Library xnnpack() {
  Library library;
  Dl_info info{};
  link_map* map = nullptr;
  void** const place = reinterpret_cast<void**>(&map);
  if (dladdr1(reinterpret_cast<void*>(&xnn_initialize), &info, place, RTLD_DL_LINKMAP) == 0 || map == nullptr) {
    throw RunError("cannot find the library of XNNPACK");
  }
  library.base = map->l_addr;
  read_dynamic_section(library, map->l_ld);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(reinterpret_cast<uintptr_t>(header) + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type != PT_GNU_RELRO) continue;
    library.read_only_start = library.base + segments[i].p_vaddr;
    library.read_only_end = library.read_only_start + segments[i].p_memsz;
  }
  return library;
}

// Returns the slots by the name of the kernel that they call.
std::map<std::string, std::vector<uintptr_t*>> kernel_slots(const Library& library) {
  std::map<std::string, std::vector<uintptr_t*>> slots;
  for (const auto& [relocations, count] : library.relocations) {
    for (const ElfW(Rela)* each = relocations; each < relocations + count; ++each) {
      const auto type = ELF64_R_TYPE(each->r_info);
      if (type != R_AARCH64_JUMP_SLOT && type != R_AARCH64_GLOB_DAT) continue;
      const char* name = library.names + library.symbols[ELF64_R_SYM(each->r_info)].st_name;
      if (std::strncmp(name, "kai_run_", 8) != 0) continue;
      slots[name].push_back(reinterpret_cast<uintptr_t*>(library.base + each->r_offset));
    }
  }
  return slots;
}

void set_slot(const Library& library, uintptr_t* slot, uintptr_t value) {
  const uintptr_t page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t at = reinterpret_cast<uintptr_t>(slot);
  void* const page = reinterpret_cast<void*>(at & ~(page_bytes - 1));
  // As the loader does, which leaves an incomplete last page writable.
  const bool read_only = at >= library.read_only_start && at < (library.read_only_end & ~(page_bytes - 1));
  if (read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) throw RunError("cannot count kernels");
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (read_only) mprotect(page, page_bytes, PROT_READ);
}

void do_nothing() { asm volatile(""); }

// Returns the nanoseconds of a call while `threads` threads make it at the same time, of the slowest thread.
double call_ns(uintptr_t function, int threads) {
  constexpr int kCalls = 2000;
  std::atomic<int> missing{threads};
  std::vector<double> per_call(static_cast<size_t>(threads));
  std::vector<std::thread> callers;
  for (double& ns : per_call) {
    callers.emplace_back([&missing, &ns, function] {
      const auto call = reinterpret_cast<void (*)()>(function);
      for (--missing; missing > 0;) std::this_thread::yield();
      const int64_t start = now_ns();
      for (int i = 0; i < kCalls; ++i) call();
      ns = static_cast<double>(now_ns() - start) / kCalls;
    });
  }
  for (std::thread& caller : callers) caller.join();
  return *std::max_element(per_call.begin(), per_call.end());
}

// Returns the nanoseconds that counting adds to a call if all threads call one kernel at once: the best of some tries.
double cost_ns_per_call(int threads) {
  constexpr int kTries = 5;
  const auto target = reinterpret_cast<uintptr_t>(&do_nothing);
  kernel_counters[kMaxKernels].kernel = target;
  double counted = call_ns(stub(kMaxKernels), threads), direct = call_ns(target, threads);
  for (int i = 1; i < kTries; ++i) {
    counted = std::min(counted, call_ns(stub(kMaxKernels), threads));
    direct = std::min(direct, call_ns(target, threads));
  }
  return std::max(counted - direct, 0.0);
}

uint64_t clock_hz() {
  uint64_t hz = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz;
}

}  // namespace

bool can_count_kernels() { return true; }

KernelCounts::KernelCounts() {
  const Library library = xnnpack();
  const auto slots = kernel_slots(library);
  if (slots.empty() || slots.size() > kMaxKernels) {
    throw RunError("cannot count kernels: XNNPACK calls " + std::to_string(slots.size()) + " kernels of KleidiAI");
  }
  for (const auto& [name, slots_of_kernel] : slots) {
    KernelCounter& counter = kernel_counters[names_.size()];
    counter.calls = counter.ticks = 0;
    // Not the value of the slot: before its first call it may lead to the loader, which would then fill it.
    counter.kernel = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, name.c_str()));
    if (counter.kernel == 0) throw RunError("cannot count kernels: no address of " + name);
    for (uintptr_t* slot : slots_of_kernel) {
      old_values_.emplace_back(slot, *slot);
      set_slot(library, slot, stub(names_.size()));
    }
    names_.push_back(name);
  }
}

std::string KernelCounts::stop(int executions, int threads) {
  const Library library = xnnpack();
  for (const auto& [slot, value] : old_values_) set_slot(library, slot, value);
  const double tick_ns = 1e9 / static_cast<double>(clock_hz());
  std::vector<JsonObject> kernels;
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto ns = static_cast<int64_t>(static_cast<double>(kernel_counters[i].ticks) * tick_ns);
    kernels.push_back(JsonObject().add("name", names_[i]).add("calls", kernel_counters[i].calls.load()).add("ns", ns));
  }
  JsonObject object;
  object.add("executions", executions).add("clock_hz", clock_hz()).add("cost_ns_per_call", cost_ns_per_call(threads));
  return object.add("kernels", kernels).text() + "\n";
}

#else

bool can_count_kernels() { return false; }
KernelCounts::KernelCounts() { throw RunError("kernels can be counted on Linux and Android with arm64 only"); }
std::string KernelCounts::stop(int, int) { return ""; }

#endif
