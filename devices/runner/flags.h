// The command line: the flags of the stock executor_runner and those of the farm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend_options.h"
#include "platform/sme2.h"

enum class PrintOutput { none, summary, all };

using Shape = std::vector<int32_t>;

// Where the inputs of a method come from. The names of the flags are for messages.
struct InputSource {
  std::string files_flag;
  std::string shapes_flag;
  std::vector<std::string> files;  // raw bytes of each input; empty: a seeded pattern
  std::vector<Shape> shapes;       // of each input; empty: the program's
};

struct Flags {
  std::string model_path;
  std::vector<std::string> data_paths;  // weights outside the program
  std::string method_name = "forward";
  int num_executions = 1;
  int output_execution = 1;  // whose outputs are written
  int untraced_executions = 0;
  int memory_reads = 0;
  int cache_reads = 0;
  int cpu_threads = -1;  // -1: one thread per fast core
  std::string load_mode = "file";
  BackendOptionTexts backend_options;
  std::string cache_file;  // empty: one start
  InputSource inputs{"inputs", "input_shapes", {}, {}};
  std::string setup_method;  // empty: none
  InputSource setup_inputs{"setup_inputs", "setup_input_shapes", {}, {}};
  std::string output_file;
  PrintOutput print_output = PrintOutput::summary;
  std::string etdump_path;
  std::string stats_path;
  std::string kernel_profile_path;
  std::string kernel_counts_path;
  std::optional<Sme> sme2;  // empty: as the processor is, and XNNPACK need not ask
  bool list_mappings = false;
  bool calibrate = false;
  bool version = false;
  bool help = false;
};

// Reads `--flag=value` and `--flag value`; throws UsageError on anything else.
Flags parse_flags(int argc, char** argv);

// The text of --help.
std::string usage();
