// A method of a program: loaded, fed, executed, read.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <memory>
#include <string>
#include <vector>

class Model {
 public:
  // Loads the method; throws UsageError if the file is missing or no program, or has no such method.
  // With `traced` all executions are recorded for write_etdump.
  Model(const std::string& path, const std::string& method, bool traced);

  // Takes the raw bytes of each input from `files`, or a seeded pattern if there are none.
  // Throws UsageError on a wrong number of files or a file of the wrong size.
  void set_inputs(const std::vector<std::string>& files);

  // Executes once and returns the wall time in nanoseconds; throws RunError.
  int64_t execute();

  // Writes PREFIX-N.bin for each output N of the last execution that is a tensor.
  void write_outputs(const std::string& prefix) const;

  // Returns one line for each output; all of its values, or the first and last few.
  std::string describe_outputs(bool all_values) const;

  // Writes what the executions recorded: one run_data for loading, then one for each execution.
  void write_etdump(const std::string& path);

 private:
  std::string method_;
  executorch::etdump::ETDumpGen* tracer_ = nullptr;  // owned by module_
  std::unique_ptr<executorch::extension::Module> module_;
  std::vector<std::vector<char>> input_bytes_;
  std::vector<executorch::extension::TensorPtr> input_tensors_;
  std::vector<executorch::runtime::EValue> inputs_;
  std::vector<executorch::runtime::EValue> outputs_;
};
