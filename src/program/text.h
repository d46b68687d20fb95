// The text form of a program: what people read and diff, what golden tests hold and what ranks compare.
//
// One line per group, value and op; ids are the order of lines. Fields that have their default value are left out.
//
//   program 1 rank 0
//   group dp 0 1
//   value tokens_0 input device i32 [64]
//   value q parameter device f32 [32,64] tensor q_proj.weight [0:32,0:64] view qkv 0
//   op 7 linear mb0.layer0.norm1 layer0.qkv -> mb0.layer0.qkv layer=0 micro_batch=0 flops=1024 bytes=2048
//   op 8 rms_norm_backward ... -> ... accumulate=true after=3,5
//
// Names hold no white space and none of the characters ",=>". Numbers are printed in the shortest form that
// reads back to the same bits: parse(print(program)) == program.
// Cost: about 150 bytes and 1 µs per op.
#pragma once

#include <string>
#include <string_view>

#include "core/hash.h"
#include "program/program.h"

namespace atl {

std::string print(const Program& program);
// Throws UserError naming the line and what was expected there.
Program parse_program(std::string_view text);

Hash128 plan_hash(const Program& program);  // XXH3-128 of the text

// For messages: "op 7 linear (layer 0, micro-batch 0)".
std::string describe(const Op& op);

}  // namespace atl
