#include "flags.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>

#include "errors.h"
#include "platform/selected_kernels.h"

namespace {

int to_int(const std::string& flag, const std::string& text, int least) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least) {
    const std::string needed = " must be an integer of at least " + std::to_string(least);
    throw UsageError("--" + flag + needed + ", not '" + text + "'");
  }
  return value;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t comma = std::min(text.find(',', start), text.size());
    if (comma > start) parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
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
  const auto found = choices.find(text);
  if (found != choices.end()) return found->second;
  std::string allowed;
  for (const auto& [name, _] : choices) allowed += (allowed.empty() ? "" : ", ") + name;
  throw UsageError("--" + flag + " must be one of " + allowed + ", not '" + text + "'");
}

using Setter = std::function<void(Flags&, const std::string&)>;

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, PrintOutput> prints = {
      {"none", PrintOutput::none}, {"summary", PrintOutput::summary}, {"all", PrintOutput::all}};
  static const std::map<std::string, Sme> switches = {{"on", Sme::sme2}, {"sme1", Sme::sme1}, {"off", Sme::none}};
  static const std::map<std::string, Setter> all = {
      {"model_path", [](Flags& f, const std::string& v) { f.model_path = v; }},
      {"data_path", [](Flags& f, const std::string& v) { f.data_paths = split_at_commas(v); }},
      {"method_name", [](Flags& f, const std::string& v) { f.method_name = v; }},
      {"num_executions", [](Flags& f, const std::string& v) { f.num_executions = to_int("num_executions", v, 1); }},
      {"output_execution",
       [](Flags& f, const std::string& v) { f.output_execution = to_int("output_execution", v, 1); }},
      {"untraced_executions",
       [](Flags& f, const std::string& v) { f.untraced_executions = to_int("untraced_executions", v, 0); }},
      {"memory_reads", [](Flags& f, const std::string& v) { f.memory_reads = to_int("memory_reads", v, 0); }},
      {"cpu_threads", [](Flags& f, const std::string& v) { f.cpu_threads = to_int("cpu_threads", v, -1); }},
      {"inputs", [](Flags& f, const std::string& v) { f.inputs.files = split_at_commas(v); }},
      {"input_shapes", [](Flags& f, const std::string& v) { f.inputs.shapes = to_shapes("input_shapes", v); }},
      {"setup_method", [](Flags& f, const std::string& v) { f.setup_method = v; }},
      {"setup_inputs", [](Flags& f, const std::string& v) { f.setup_inputs.files = split_at_commas(v); }},
      {"setup_input_shapes",
       [](Flags& f, const std::string& v) { f.setup_inputs.shapes = to_shapes("setup_input_shapes", v); }},
      {"output_file", [](Flags& f, const std::string& v) { f.output_file = v; }},
      {"print_output", [](Flags& f, const std::string& v) { f.print_output = to_choice("print_output", v, prints); }},
      {"etdump_path", [](Flags& f, const std::string& v) { f.etdump_path = v; }},
      {"stats_path", [](Flags& f, const std::string& v) { f.stats_path = v; }},
      {"kernel_profile_path", [](Flags& f, const std::string& v) { f.kernel_profile_path = v; }},
      {"selected_kernels_path", [](Flags& f, const std::string& v) { f.selected_kernels_path = v; }},
      {"sme2", [](Flags& f, const std::string& v) { f.sme2 = to_choice("sme2", v, switches); }},
  };
  return all;
}

}  // namespace

Flags parse_flags(int argc, char** argv) {
  Flags flags;
  std::set<std::string> seen;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--version") flags.version = true;
    else if (argument == "--calibrate") flags.calibrate = true;
    else if (argument == "--help") flags.help = true;
    else {
      const size_t equals = argument.find('=');
      const std::string name = argument.rfind("--", 0) == 0 ? argument.substr(0, equals).substr(2) : "";
      const auto setter = setters().find(name);
      if (setter == setters().end()) throw UsageError("unknown flag '" + argument + "'; see --help");
      if (!seen.insert(name).second) throw UsageError("duplicate flag --" + name + "; remove one");
      if (equals == std::string::npos && i + 1 == argc) throw UsageError("--" + name + " needs a value");
      setter->second(flags, equals == std::string::npos ? argv[++i] : argument.substr(equals + 1));
    }
  }
  const bool needs_model = !flags.calibrate && !flags.version && !flags.help;
  if (needs_model && flags.model_path.empty()) throw UsageError("--model_path is missing");
  // Trying how many more the system can start would take them away from all other programs.
  constexpr int kMostThreads = 1024;
  if (flags.cpu_threads == 0 || flags.cpu_threads > kMostThreads) {
    throw UsageError("--cpu_threads must be -1 (one thread per fast core) or from 1 to " + std::to_string(kMostThreads) +
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
  if (!flags.selected_kernels_path.empty() && !can_tell_selected_kernels()) {
    throw UsageError("--selected_kernels_path is possible on Linux and Android with arm64 only");
  }
  return flags;
}

std::string usage() {
  return
      "Usage: executor_runner --model_path=MODEL.pte [flags]\n"
      "Runs a method of an ExecuTorch program and writes measurements. Flags are --flag=value or --flag value;\n"
      "defaults are in parentheses.\n"
      "  --model_path FILE           the program (.pte)\n"
      "  --data_path A.ptd,B.ptd     files with weights that the program does not contain (none)\n"
      "  --method_name NAME          the method (forward)\n"
      "  --num_executions N          number of executions (1)\n"
      "  --cpu_threads N             threads of the pool; -1: one per fast core (-1)\n"
      "  --inputs A.bin,B.bin        raw bytes of each input that is a tensor (a seeded pattern); numbers are constants\n"
      "                              of the program\n"
      "  --input_shapes 1x3x64,scalar\n"
      "                              shape of each input, where a dynamic one is smaller (the program's largest)\n"
      "  --setup_method NAME         a method executed once before the executions and not measured, to fill the state\n"
      "                              that methods share, such as a KV cache (none)\n"
      "  --setup_inputs A.bin,B.bin  --inputs of the setup method (a seeded pattern); a multiple of its inputs executes it\n"
      "                              once for each, in this order\n"
      "  --setup_input_shapes SHAPES\n"
      "                              --input_shapes of the setup method (the program's largest)\n"
      "  --output_file PREFIX        writes PREFIX-0.bin, PREFIX-1.bin, ... of the first execution, whose state is fresh,\n"
      "                              or of --output_execution\n"
      "  --output_execution N        the execution whose outputs are written, counted from 1 (1)\n"
      "  --print_output WHAT         none, summary or all (summary)\n"
      "  --etdump_path FILE          writes an ETDump of all executions\n"
      "  --untraced_executions N     N more at the end without an ETDump, after loading again, to see what it costs (0)\n"
      "  --memory_reads N            reads 256 MB N times at the end, on as many threads as the pool has, to see how fast\n"
      "                              memory can be read (0)\n"
      "  --stats_path FILE           writes JSON: times, memory, threads, SME2, exit reason\n"
      "  --sme2 on|sme1|off          what XNNPACK may use: SME2, SME without SME2, or neither (what the processor has)\n"
      "  --kernel_profile_path FILE  writes JSON: the executed kernels, by sampling, which slows the executions\n"
      "  --selected_kernels_path FILE\n"
      "                              writes JSON: the kernels that XNNPACK selected for the model (arm64 Linux, Android)\n"
      "  --calibrate                 prints the nanoseconds of a fixed piece of work on one thread; needs no model\n"
      "  --version                   prints JSON: versions, platform, SME2\n"
      "Example: executor_runner --model_path=model.pte --num_executions=50 --etdump_path=model.etdump\n";
}
