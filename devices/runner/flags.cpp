#include "flags.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "errors.h"
#include "load_mode.h"
#include "platform/kernel_counts.h"

namespace {

int to_int(const std::string& flag, const std::string& text, int min) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < min) {
    const std::string needed = " must be an integer of at least " + std::to_string(min);
    throw UsageError("--" + flag + needed + ", not '" + text + "'");
  }
  return value;
}

std::vector<std::string> split_at(char separator, const std::string& text) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<std::string> split_at_commas(const std::string& text) { return split_at(',', text); }

// Returns what is before and after the first `separator`; throws UsageError if either is empty.
std::pair<std::string, std::string> split_once(char separator, const std::string& flag, const std::string& text) {
  const size_t at = text.find(separator);
  if (at != std::string::npos && at > 0 && at + 1 < text.size()) return {text.substr(0, at), text.substr(at + 1)};
  throw UsageError("--" + flag + " must list options such as XnnpackBackend:key=true,other=1, not '" + text + "'");
}

// Reads `Backend:key=value,key=value;Other:key=value`.
BackendOptionTexts to_backend_options(const std::string& flag, const std::string& text) {
  BackendOptionTexts options;
  for (const std::string& part : split_at(';', text)) {
    const auto [backend, list] = split_once(':', flag, part);
    for (const std::string& option : split_at_commas(list)) {
      const auto [key, value] = split_once('=', flag, option);
      if (!options[backend].emplace(key, value).second) throw UsageError("--" + flag + ": duplicate key " + key);
    }
  }
  return options;
}

// Reads `1x3x64x64,scalar`: a scalar has no dimensions.
std::vector<Shape> to_shapes(const std::string& flag, const std::string& text) {
  std::vector<Shape> shapes;
  for (const std::string& part : split_at_commas(text)) {
    shapes.emplace_back();
    const char* end = part.data() + part.size();
    for (const char* at = part.data(); part != "scalar"; ++at) {
      int32_t size = 0;
      const auto [stop, error] = std::from_chars(at, end, size);
      if (error != std::errc() || size < 0 || (stop != end && *stop != 'x')) {
        throw UsageError("--" + flag + " must list shapes such as 1x3x64 or scalar, not '" + part + "'");
      }
      shapes.back().push_back(size);
      at = stop;
      if (at == end) break;
    }
  }
  return shapes;
}

template <typename Choice>
Choice to_choice(const std::string& flag, const std::string& text, const std::map<std::string, Choice>& choices) {
  const auto choice = choices.find(text);
  if (choice != choices.end()) return choice->second;
  std::string allowed;
  for (const auto& [name, _] : choices) allowed += (allowed.empty() ? "" : ", ") + name;
  throw UsageError("--" + flag + " must be one of " + allowed + ", not '" + text + "'");
}

using Setter = std::function<void(Flags&, const std::string& name, const std::string& text)>;

// A flag of the command line: all that is stated about it.
struct Flag {
  std::string name;
  std::string value;  // as the help names it; empty: the flag has none
  std::string help;
  Setter set;
};

Setter on(bool Flags::*member) { return [=](Flags& flags, auto&, auto&) { flags.*member = true; }; }
Setter text(std::string Flags::*member) { return [=](Flags& flags, auto&, auto& text) { flags.*member = text; }; }
Setter number(int Flags::*member, int min) {
  return [=](Flags& flags, const auto& name, const auto& text) { flags.*member = to_int(name, text, min); };
}
Setter files(InputSource Flags::*source) {
  return [source](Flags& flags, const auto&, const auto& text) { (flags.*source).files = split_at_commas(text); };
}
Setter shapes(InputSource Flags::*source) {
  return [source](Flags& flags, const auto& name, const auto& text) { (flags.*source).shapes = to_shapes(name, text); };
}
template <typename Member, typename Choice>
Setter choice(Member Flags::*member, const std::map<std::string, Choice>& choices) {
  return [=](Flags& flags, const auto& name, const auto& text) { flags.*member = to_choice(name, text, choices); };
}

const std::vector<Flag>& all_flags() {
  static const std::map<std::string, PrintOutput> prints = {
      {"none", PrintOutput::none}, {"summary", PrintOutput::summary}, {"all", PrintOutput::all}};
  static const std::map<std::string, Sme> levels = {{"on", Sme::sme2}, {"sme1", Sme::sme1}, {"off", Sme::none}};
  static const std::vector<Flag> flags = {
      {"model_path", "FILE", "the program (.pte)", text(&Flags::model_path)},
      {"data_path", "A.ptd,B.ptd", "files with weights that the program does not contain (none)",
       [](Flags& flags, const auto&, const auto& text) { flags.data_paths = split_at_commas(text); }},
      {"method_name", "NAME", "the method (forward)", text(&Flags::method_name)},
      {"num_executions", "N", "number of executions (1)", number(&Flags::num_executions, 1)},
      {"cpu_threads", "N", "threads of the pool; -1: one per fast core (-1)", number(&Flags::cpu_threads, -1)},
      {"load_mode", "MODE", "how the program gets into memory: file (read), mmap, mmap_mlock, mmap_try_mlock (not all "
       "systems can lock it), mmap_madvise (file)",
       [](Flags& flags, const auto& name, const auto& text) {
         to_choice(name, text, load_modes());
         flags.load_mode = text;
       }},
      {"backend_options", "BACKEND:KEY=VALUE,...", "options of a backend, such as "
       "XnnpackBackend:weight_cache_enabled=true; a value is true, false, an integer or a text; other backends follow "
       "after ; (none)",
       [](Flags& flags, const auto& name, const auto& text) { flags.backend_options = to_backend_options(name, text); }},
      {"cache_file", "FILE", "a cache that backends write in one start and read in the next, named in "
       "--backend_options: a child process loads and executes the model once before, and FILE is removed at the end "
       "(none)", text(&Flags::cache_file)},
      {"inputs", "A.bin,B.bin", "raw bytes of each input that is a tensor (a seeded pattern); numbers are constants of "
       "the program", files(&Flags::inputs)},
      {"input_shapes", "1x3x64,scalar", "shape of each input, where a dynamic one is smaller (the program's largest)",
       shapes(&Flags::inputs)},
      {"setup_method", "NAME", "a method executed once before the measured executions, to fill shared state such as a KV "
       "cache (none)", text(&Flags::setup_method)},
      {"setup_inputs", "A.bin,B.bin", "--inputs of the setup method (a seeded pattern); a multiple of its inputs "
       "executes it once for each, in this order", files(&Flags::setup_inputs)},
      {"setup_input_shapes", "SHAPES", "--input_shapes of the setup method (the program's largest)",
       shapes(&Flags::setup_inputs)},
      {"output_file", "PREFIX", "writes PREFIX-0.bin, PREFIX-1.bin, ... of the first execution, whose state is fresh, "
       "or of --output_execution", text(&Flags::output_file)},
      {"output_execution", "N", "the execution whose outputs are written, counted from 1 (1)",
       number(&Flags::output_execution, 1)},
      {"print_output", "WHAT", "none, summary or all (summary)", choice(&Flags::print_output, prints)},
      {"etdump_path", "FILE", "writes an ETDump of all executions", text(&Flags::etdump_path)},
      {"untraced_executions", "N", "N more at the end without an ETDump, after loading again, to see what it costs (0)",
       number(&Flags::untraced_executions, 0)},
      {"memory_reads", "N", "reads 256 MB N times at the end, on as many threads as the pool has, to see how fast memory "
       "can be read (0)", number(&Flags::memory_reads, 0)},
      {"cache_reads", "N", "reads sizes from 16 KB to 256 MB again and again, each N times 256 MB, at the end, to see how "
       "fast caches can be read (0)", number(&Flags::cache_reads, 0)},
      {"stats_path", "FILE", "writes JSON: times, memory, threads, SME2, exit reason", text(&Flags::stats_path)},
      {"list_mappings", "", "adds the largest mappings after the first execution to --stats_path (Linux, Android)",
       on(&Flags::list_mappings)},
      {"sme2", "on|sme1|off", "what XNNPACK may use: SME2, SME without SME2, or neither (what the processor has)",
       choice(&Flags::sme2, levels)},
      {"kernel_profile_path", "FILE", "writes JSON: the executed kernels, by sampling, which slows the executions",
       text(&Flags::kernel_profile_path)},
      {"kernel_counts_path", "FILE", "writes JSON: every call of KleidiAI's kernels, counted and timed (arm64 Linux, "
       "Android)", text(&Flags::kernel_counts_path)},
      {"calibrate", "", "prints the nanoseconds of a fixed piece of work on one thread; needs no model",
       on(&Flags::calibrate)},
      {"version", "", "prints JSON: versions, platform, SME2", on(&Flags::version)},
      {"help", "", "prints this text", on(&Flags::help)},
  };
  return flags;
}

}  // namespace

Flags parse_flags(int argc, char** argv) {
  Flags flags;
  std::set<std::string> seen;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.rfind("--", 0) == 0 ? argument.substr(0, equals).substr(2) : "";
    const auto flag = std::find_if(all_flags().begin(), all_flags().end(),
                                   [&name](const Flag& each) { return each.name == name; });
    const bool is_valid = flag != all_flags().end() && (equals == std::string::npos || !flag->value.empty());
    if (!is_valid) throw UsageError("unknown flag '" + argument + "'; see --help");
    const bool takes_next = !flag->value.empty() && equals == std::string::npos;
    if (!flag->value.empty() && !seen.insert(name).second) throw UsageError("duplicate flag --" + name + "; remove one");
    if (takes_next && i + 1 == argc) throw UsageError("--" + name + " needs a value");
    flag->set(flags, name, takes_next ? argv[++i] : equals == std::string::npos ? "" : argument.substr(equals + 1));
  }
  const bool needs_model = !flags.calibrate && !flags.version && !flags.help;
  if (needs_model && flags.model_path.empty()) throw UsageError("--model_path is missing");
  // Trying how many more the system can start would take them away from all other programs.
  constexpr int kMaxThreads = 1024;
  if (flags.cpu_threads == 0 || flags.cpu_threads > kMaxThreads) {
    throw UsageError("--cpu_threads must be -1 (one thread per fast core) or from 1 to " + std::to_string(kMaxThreads) +
                     ", not '" + std::to_string(flags.cpu_threads) + "'");
  }
  for (const std::string name : {"setup_inputs", "setup_input_shapes"}) {
    if (seen.count(name) && flags.setup_method.empty()) throw UsageError("--" + name + " needs --setup_method");
  }
  if (flags.output_execution > flags.num_executions) {
    throw UsageError("--output_execution must be at most --num_executions, which is " +
                     std::to_string(flags.num_executions));
  }
  if (flags.untraced_executions > 0 && flags.etdump_path.empty()) {
    throw UsageError("--untraced_executions needs --etdump_path, to compare with");
  }
  if (!flags.kernel_counts_path.empty() && !can_count_kernels()) {
    throw UsageError("--kernel_counts_path is possible on Linux and Android with arm64 only");
  }
  return flags;
}

std::string usage() {
  std::string text =
      "Usage: executor_runner --model_path=MODEL.pte [flags]\n"
      "Runs a method of an ExecuTorch program and writes measurements. Flags are --flag=value or --flag value;\n"
      "defaults are in parentheses.\n";
  for (const Flag& flag : all_flags()) {
    text += "  --" + flag.name + (flag.value.empty() ? "" : " " + flag.value) + "\n      " + flag.help + "\n";
  }
  return text + "Example: executor_runner --model_path=model.pte --num_executions=50 --etdump_path=model.etdump\n";
}
