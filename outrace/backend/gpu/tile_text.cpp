// A tile program as a C function over one element, and what it needs of the kernel around it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "outrace/backend/gpu/axes.h"
#include "outrace/backend/gpu/kernel_rows.h"
#include "outrace/core/error.h"

namespace outrace::gpu {
namespace {

class Printer {
 public:
  Printer(std::string_view name, const TileProgram& p, const Plan& plan, bool indices_fit)
      : name_(name),
        prefix_(name == "PROLOGUE"   ? "p"
                : name == "EPILOGUE" ? "e"
                                     : std::string(name) + "_"),
        p_(p),
        plan_(plan),
        small_(indices_fit && p.space.numel() < kSmallSpace),
        compute_(type_name(p.compute)) {}

  PrintedProgram print() {
    find_live();
    collapse();
    for (size_t r = 0; r < p_.loads.size(); ++r)
      if (live_[r]) print_load(static_cast<int>(r));
    for (size_t i = 0; i < p_.instrs.size(); ++i) {
      const TileInstr& instr = p_.instrs[i];
      const int r = static_cast<int>(p_.loads.size() + i);
      if (live_[r])
        body_ += fmt::format("  const {} r{} = {};\n", compute_, r,
                             print_op(instr.op, p_.compute, reg(instr.x), reg(instr.z), reg(instr.w)));
    }
    for (const TileStore& s : p_.stores) print_store(s);
    return assemble();
  }

 private:
  static std::string reg(int r) { return "r" + std::to_string(r); }

  void find_live() {
    live_.assign(p_.loads.size() + p_.instrs.size(), 0);
    if (p_.result >= 0 && hands_out()) live_[p_.result] = 1;
    for (const TileStore& s : p_.stores) live_[s.reg] = 1;
    for (size_t i = p_.instrs.size(); i-- > 0;)
      if (live_[p_.loads.size() + i])
        for (const int r : {p_.instrs[i].x, p_.instrs[i].z, p_.instrs[i].w})
          if (r >= 0) live_[r] = 1;
  }

  // A program without stores hands its result to the kernel.
  bool hands_out() const { return p_.stores.empty(); }

  // Neighbouring axes that every array walks in one stride become one.
  void collapse() {
    std::vector<const View*> views;
    for (size_t r = 0; r < p_.loads.size(); ++r)
      if (live_[r] && p_.loads[r].kind == TileLoad::Kind::view) views.push_back(&p_.loads[r].view);
    for (const TileStore& s : p_.stores) views.push_back(&s.view);
    for (int i = 0; i < p_.space.rank(); ++i) {
      const int64_t size = p_.space[i];
      if (size == 1) continue;
      const bool joins = !dims_.empty() && std::all_of(views.begin(), views.end(), [&](const View* v) {
        return v->strides[axes_.back()] == v->strides[i] * size;
      });
      if (joins) {
        dims_.back() *= size;
        axes_.back() = i;
      } else {
        dims_.push_back(size);
        axes_.push_back(i);
      }
    }
  }

  int rank() const { return static_cast<int>(dims_.size()); }

  std::string number(int64_t value) {
    const std::string n = fmt::format("{}n{}", prefix_, numbers_.size());
    numbers_.push_back(n);
    number_args_.push_back(Arg::i64(value));
    return n;
  }

  std::string array(DType type, const View& view, bool written) {
    const std::string key = fmt::format("{} {} {}", view.value, view.offset, type_name(type));
    auto [known, fresh] = arrays_.try_emplace(key, static_cast<int>(array_list_.size()));
    if (fresh) {
      array_list_.push_back({fmt::format("{}a{}", prefix_, array_list_.size()), std::string(type_name(type)), written});
      array_args_.push_back(Arg::array(view.value, view.offset * size_of(type)));
    }
    array_list_[known->second].written |= written;
    return array_list_[known->second].name;
  }

  // The element of `view` that belongs to element i of the space.
  std::string element(const View& view) {
    int64_t dense = 1;
    bool is_dense = true, is_one = true;
    for (int k = rank() - 1; k >= 0; --k) {
      const int64_t stride = view.strides[axes_[k]];
      is_dense &= stride == dense;
      is_one &= stride == 0;
      dense *= dims_[k];
    }
    if (is_dense) return "i";
    if (is_one) return "0";
    needs_axes_ = true;
    std::string sum;
    for (int k = 0; k < rank(); ++k) {
      const int64_t stride = view.strides[axes_[k]];
      if (stride == 0) continue;
      sum += fmt::format("{}(i64)i{}{}", sum.empty() ? "" : " + ", k, stride == 1 ? "" : " * " + number(stride));
    }
    return sum;
  }

  void print_load(int r) {
    const TileLoad& l = p_.loads[r];
    std::string value;
    switch (l.kind) {
      case TileLoad::Kind::constant: value = print_literal(l.constant, p_.compute); break;
      case TileLoad::Kind::producer: value = "value"; break;
      case TileLoad::Kind::scalar: {
        const DType type = is_float(l.dtype) ? (p_.compute == DType::f64 ? DType::f64 : DType::f32) : DType::i64;
        value = fmt::format("{}_of_{}({})", compute_, type_name(type), scalar(l.scalar, type));
        break;
      }
      case TileLoad::Kind::view:
        value = fmt::format("{}_of_{}({}[{}])", compute_, type_name(l.dtype), array(l.dtype, l.view, false),
                            element(l.view));
        break;
    }
    body_ += fmt::format("  const {} r{} = {};\n", compute_, r, value);
  }

  // All scalars lie in one buffer. Each is read at the kernel's start.
  std::string scalar(int index, DType type) {
    if (!reads_scalars_) {
      reads_scalars_ = true;
      array_list_.push_back({prefix_ + "s", "i64", false});
      array_args_.push_back(Arg::array(static_cast<int>(plan_.values.size()) + CallBuilder::scalars));
    }
    const std::string name = fmt::format("{}v{}", prefix_, scalars_.size()), t(type_name(type));
    scalars_.push_back({t, name, fmt::format("scalar_{}({}s + {})", t, prefix_, number(int64_t{2} * index))});
    return name;
  }

  void print_store(const TileStore& s) {
    stores_ += fmt::format("  {}[{}] = {}_of_{}(r{});\n", array(s.dtype, s.view, true), element(s.view),
                           type_name(s.dtype), compute_, s.reg);
  }

  // i0 .. of the collapsed axes, from the last one's and the number of what is before it.
  std::string axes_text() {
    if (!needs_axes_) return "";
    std::string text = fmt::format("  const INDEX i{} = inner;\n", rank() - 1);
    if (rank() == 1) return text;
    text += "  INDEX rest = outer;\n";
    for (int k = rank() - 2; k > 0; --k)
      text += fmt::format("  const INDEX q{0} = {1}, i{0} = rest - q{0} * (INDEX){2};\n  rest = q{0};\n", k,
                          quotient("rest", k), sizes_[k]);
    return text + "  const INDEX i0 = rest;\n";
  }

  // `n` divided by the size of axis k.
  std::string quotient(const std::string& n, int k) {
    if (sizes_[k].empty()) {
      sizes_[k] = number(dims_[k]);
      magics_[k] = small_ ? number(magic_of(dims_[k])) : "";
    }
    return small_ ? fmt::format("(i64)div_by((u32)({}), {})", n, magics_[k]) : fmt::format("({} / {})", n, sizes_[k]);
  }

  PrintedProgram assemble() {
    PrintedProgram out;
    sizes_.resize(dims_.size());
    magics_.resize(dims_.size());
    const std::string axes = axes_text(), outer = needs_axes_ ? quotient("i", rank() - 1) : "";
    std::string params, starts, formals, actuals;
    for (const Array& a : array_list_) {
      params += fmt::format(", ARRAY({}, {})", a.type, a.name);
      starts += fmt::format("AT({}, {}); ", a.type, a.name);
      formals += fmt::format(", {}GLOBAL {} *{}", a.written ? "" : "const ", a.type, a.name);
      actuals += ", " + a.name;
    }
    for (const Scalar& s : scalars_) {
      starts += fmt::format("const {} {} = {}; ", s.type, s.name, s.value);
      formals += fmt::format(", {} {}", s.type, s.name);
      actuals += ", " + s.name;
    }
    for (const std::string& n : numbers_) {
      params += ", i64 " + n;
      formals += ", i64 " + n;
      actuals += ", " + n;
    }
    const std::string type = hands_out() ? compute_ : "void", result = hands_out() ? reg(p_.result) : "";
    // A program with stores is handed the producer's value, used or not.
    const std::string value_formal = hands_out() ? "" : ", " + compute_ + " value",
                      value = hands_out() ? "" : ", value";
    out.text = fmt::format("#define {0}_PARAMS {1}\n#define {0}_ARRAYS {2}\n", name_, params, starts);
    out.text += fmt::format("INLINE {} {}_function(INDEX i{}{}{}) {{\n{}{}{}{}}}\n", type, name_,
                            needs_axes_ ? ", INDEX outer, INDEX inner" : "", value_formal, formals, axes, body_,
                            stores_, hands_out() ? "  return " + result + ";\n" : "");
    if (needs_axes_) {
      out.text += fmt::format(
          "INLINE {0} {1}_from(INDEX i{2}{3}) {{\n  const INDEX outer = {4};\n  {5}{1}_function(i, outer, i - outer * "
          "(INDEX){6}{7}{8});\n}}\n#define {1}(i{7}) {1}_from(i{7}{8})\n#define {1}_AT(i, outer, inner{7}) "
          "{1}_function(i, outer, inner{7}{8})\n",
          type, name_, value_formal, formals, outer, hands_out() ? "return " : "", sizes_[rank() - 1], value, actuals);
      out.inner = dims_.back();
    } else {
      out.text += fmt::format("#define {0}(i{1}) {0}_function(i{1}{2})\n#define {0}_AT(i, outer, inner{1}) {0}(i{1})\n",
                              name_, value, actuals);
    }
    out.args = std::move(array_args_);
    out.args.insert(out.args.end(), number_args_.begin(), number_args_.end());
    out.arrays = static_cast<int>(array_list_.size());
    return out;
  }

  struct Array {
    std::string name, type;
    bool written;
  };
  struct Scalar {
    std::string type, name, value;
  };

  const std::string name_, prefix_;
  const TileProgram& p_;
  const Plan& plan_;
  const bool small_;
  const std::string compute_;
  std::vector<char> live_;
  std::vector<int64_t> dims_;
  std::vector<int> axes_;  // the innermost axis of the space in each
  std::map<std::string, int> arrays_;
  std::vector<Array> array_list_;
  std::vector<Scalar> scalars_;
  std::vector<std::string> numbers_, sizes_, magics_;
  std::vector<Arg> array_args_, number_args_;
  std::string body_, stores_;
  bool needs_axes_ = false, reads_scalars_ = false;
};

}  // namespace

PrintedProgram print_program(std::string_view name, const TileProgram& program, const Plan& plan, bool indices_fit) {
  return Printer(name, program, plan, indices_fit).print();
}

}  // namespace outrace::gpu
