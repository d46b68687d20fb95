// Binding: from an op of a program to a call with everything it needs at hand. One function per op kind, in the
// ops_*.cpp files by family.
//
// A bound call allocates nothing, and works on addresses that are fixed: it may be made any number of times.
#pragma once

#include <functional>
#include <span>

#include "core/check.h"
#include "engine/program_memory.h"
#include "program/program.h"

namespace atl {

using BoundCall = std::function<void()>;

// An op with its memory.
class BoundOperands {
  public:
    BoundOperands(const Program& program, const ProgramMemory& memory, const Op& op, std::int32_t threads)
        : program_(program), memory_(memory), op_(op), threads_(threads) {}

    const Op& op() const { return op_; }
    std::int32_t threads() const { return threads_; }
    std::byte* scratch() const { return memory_.scratch(op_.id); }

    std::size_t read_count() const { return op_.reads.size(); }
    std::size_t write_count() const { return op_.writes.size(); }
    template <class T>
    const T* read(std::size_t i) const {
        return memory_.view(op_.reads.at(i)).as<T>().data();
    }
    template <class T>
    T* write(std::size_t i) const {
        return memory_.view(op_.writes.at(i)).as<T>().data();
    }
    BufferView written_view(std::size_t i) const { return memory_.view(op_.writes.at(i)); }
    const Value& read_value(std::size_t i) const { return program_.value(op_.reads.at(i)); }
    const Value& written_value(std::size_t i) const { return program_.value(op_.writes.at(i)); }
    const Shape& read_shape(std::size_t i) const { return read_value(i).shape; }
    const Shape& written_shape(std::size_t i) const { return written_value(i).shape; }

    template <class Attributes>
    const Attributes& attributes() const {
        return std::get<Attributes>(op_.attributes);
    }
    bool accumulate() const { return attributes<AccumulateAttributes>().accumulate; }

  private:
    const Program& program_;
    const ProgramMemory& memory_;
    const Op& op_;
    std::int32_t threads_;
};

// Every kind but the collectives, which the executor itself runs.
BoundCall bind_op(const BoundOperands& operands);

// By family; T is the dtype of the op's activations. Each fails a check for a kind of another family.
template <class T>
BoundCall bind_norm(const BoundOperands& operands);
template <class T>
BoundCall bind_attention(const BoundOperands& operands);  // rope too
template <class T>
BoundCall bind_elementwise(const BoundOperands& operands);
template <class T>
BoundCall bind_vocabulary(const BoundOperands& operands);  // embedding, cross-entropy
template <class T>
BoundCall bind_optimizer(const BoundOperands& operands);
template <class T>
BoundCall bind_linear(const BoundOperands& operands);  // libtorch's
template <class T>
BoundCall bind_muon(const BoundOperands& operands);  // libtorch's products
std::int64_t muon_scratch_bytes(const Value& gradient);

}  // namespace atl
