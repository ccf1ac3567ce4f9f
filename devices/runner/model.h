// Loads a method of a program, sets its inputs, executes it and reads its outputs.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <memory>
#include <string>
#include <vector>

class Model {
 public:
  // Loads the method; throws UsageError if the file is missing, is not a program, or does not have the method.
  // If `traced`, all executions are recorded for write_etdump.
  Model(const std::string& path, const std::string& method, bool traced);

  // Sets each input to the raw bytes of its file, or to a seeded pattern if `files` is empty.
  // Throws UsageError if the number of files or the size of a file is wrong.
  void set_inputs(const std::vector<std::string>& files);

  // Executes once and returns the wall time in nanoseconds; throws RunError.
  int64_t execute();

  // Writes PREFIX-N.bin for each output N of the last execution that is a tensor.
  void write_outputs(const std::string& prefix) const;

  // Returns one line for each output, with all of its values or the first and last five.
  std::string describe_outputs(bool all_values) const;

  // Writes the recorded events: one run_data for loading, then one for each execution.
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
