#include "inputs.h"

#include <functional>
#include <numeric>
#include <random>

#include "errors.h"
#include "files.h"

using executorch::aten::DimOrderType;
using executorch::aten::ScalarType;
using executorch::aten::SizesType;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::MethodMeta;
using executorch::runtime::Tag;

namespace {

// XNNPACK's kernels may read past the end of a buffer.
constexpr size_t kPadding = 128;

template <typename Float>
void fill_floats(std::vector<char>& bytes, std::mt19937& random) {
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  auto* data = reinterpret_cast<Float*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(Float); ++i) data[i] = static_cast<Float>(values(random));
}

// 0 and 1 are valid values of all other types, also as an index or a bool.
void fill_pattern(std::vector<char>& bytes, ScalarType type, std::mt19937& random) {
  if (type == ScalarType::Float) fill_floats<float>(bytes, random);
  else if (type == ScalarType::Double) fill_floats<double>(bytes, random);
  else if (type == ScalarType::Half) fill_floats<executorch::aten::Half>(bytes, random);
  else if (type == ScalarType::BFloat16) fill_floats<executorch::aten::BFloat16>(bytes, random);
  else {
    const size_t width = executorch::runtime::elementSize(type);
    for (size_t i = 0; i < bytes.size(); i += width) bytes[i] = static_cast<char>(random() & 1);
  }
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const SizesType size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

void check_count(size_t listed, size_t count, const std::string& flag, const std::string& method, const char* what) {
  if (listed == 0 || listed == count) return;
  throw UsageError("method '" + method + "' has " + std::to_string(count) + " inputs that are tensors, but --" + flag +
                   " lists " + std::to_string(listed) + " " + what);
}

// Returns the constants of the program as they are, and None for each tensor.
std::vector<EValue> constants(executorch::extension::Module& module, const MethodMeta& meta, const std::string& method) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // nothing else tells the value of a constant
  const auto loaded = module.method(method);
  if (!loaded.ok()) throw RunError("cannot read the inputs of method '" + method + "'");
  std::vector<EValue> values(meta.num_inputs());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto tag = meta.input_tag(i);
    if (tag.ok() && *tag == Tag::Tensor) continue;
    if (!tag.ok() || (*tag != Tag::Int && *tag != Tag::Double && *tag != Tag::Bool)) {
      throw UsageError("input " + std::to_string(i) + " of method '" + method +
                       "' is neither a tensor nor a number; export the program without it");
    }
    values[i] = (*loaded)->get_input(i);
  }
#pragma GCC diagnostic pop
  return values;
}

// Every dimension may be smaller than the program's; whether it really is dynamic shows when the input is set.
void check_fits(const Shape& shape, const Shape& largest, const std::string& name, const std::string& flag) {
  bool fits = shape.size() == largest.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] <= largest[i];
  if (fits) return;
  throw UsageError(name + " can be at most " + shape_text(largest) + ", with as many dimensions, but --" + flag +
                   " gives " + shape_text(shape));
}

std::vector<char> read_input(const std::string& file, size_t needed, const std::string& name, const Shape& shape) {
  std::vector<char> bytes = read_file(file, "input");
  if (bytes.size() == needed) return bytes;
  throw UsageError(name + " needs " + std::to_string(needed) + " bytes for its shape " + shape_text(shape) + ", but " +
                   file + " has " + std::to_string(bytes.size()));
}

template <typename Item>
std::vector<Item> slice(const std::vector<Item>& all, size_t start, size_t count) {
  if (all.empty()) return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(start), all.begin() + static_cast<std::ptrdiff_t>(start + count)};
}

}  // namespace

std::vector<InputSource> Inputs::split_by_execution(executorch::extension::Module& module, const std::string& method,
                                                   const InputSource& source) {
  const auto meta = module.method_meta(method);
  size_t tensors = 0;
  for (size_t i = 0; meta.ok() && i < meta->num_inputs(); ++i) {
    const auto tag = meta->input_tag(i);
    tensors += tag.ok() && *tag == Tag::Tensor;
  }
  const size_t files = source.files.size(), shapes = source.shapes.size();
  // Anything else is a mistake, which the execution reports.
  if (tensors == 0 || files <= tensors || files % tensors != 0 || (shapes != 0 && shapes != files)) return {source};
  std::vector<InputSource> parts;
  for (size_t start = 0; start < files; start += tensors) {
    parts.push_back({source.files_flag, source.shapes_flag, slice(source.files, start, tensors),
                     slice(source.shapes, start, tensors)});
  }
  return parts;
}

Inputs::Inputs(executorch::extension::Module& module, const std::string& method, const InputSource& source) {
  const auto meta = module.method_meta(method);
  if (!meta.ok()) throw RunError("cannot read the inputs of method '" + method + "'");
  values_ = constants(module, *meta, method);
  std::vector<size_t> positions;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].isNone()) positions.push_back(i);
  }
  check_count(source.files.size(), positions.size(), source.files_flag, method, "files");
  check_count(source.shapes.size(), positions.size(), source.shapes_flag, method, "shapes");
  std::mt19937 random(0);
  for (size_t i = 0; i < positions.size(); ++i) {
    const std::string name = "input " + std::to_string(positions[i]) + " of method '" + method + "'";
    const auto info = meta->input_tensor_meta(positions[i]);
    if (!info.ok()) throw RunError("cannot read " + name);
    const Shape largest(info->sizes().begin(), info->sizes().end());
    const Shape shape = source.shapes.empty() ? largest : source.shapes[i];
    check_fits(shape, largest, name, source.shapes_flag);
    const size_t elements = std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<size_t>());
    const size_t needed = elements * executorch::runtime::elementSize(info->scalar_type());
    std::vector<char> bytes(needed);
    if (source.files.empty()) fill_pattern(bytes, info->scalar_type(), random);
    else bytes = read_input(source.files[i], needed, name, shape);
    bytes.resize(needed + kPadding);
    bytes_.push_back(std::move(bytes));
    tensors_.push_back(executorch::extension::make_tensor_ptr(
        shape, bytes_.back().data(), std::vector<DimOrderType>(info->dim_order().begin(), info->dim_order().end()), {},
        info->scalar_type()));
    values_[positions[i]] = EValue(tensors_.back());
    if (shape != largest && module.set_input(method, values_[positions[i]], positions[i]) != Error::Ok) {
      throw UsageError(name + " has the static shape " + shape_text(largest) + ", but --" + source.shapes_flag +
                       " gives " + shape_text(shape));
    }
  }
}
