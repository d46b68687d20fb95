// The checker: proves of all ranks' programs together what executors rely on. Every problem names its ops.
//
//  - ids are positions, names are unique, attributes, reads and writes are those of the op's kind
//  - every op stands once; activations and outputs are written once, before they are read; nobody writes inputs
//  - views lie inside their base, which has the same role, space and dtype; only ops that can work in place write
//    bytes that they read, and nobody reads the old content afterwards
//  - the writers of a gradient are ordered by micro-batch; the first overwrites, the others add
//  - the i-th collective of a group is the same kind, of the same micro-batch, with as many elements on every member;
//    the i-th send to a rank meets that rank's i-th receive from here, with as many elements of the same dtype, of the
//    same micro-batch, between neighbouring layers; all are numbered in issue order
//  - issue order, data edges, after edges, collectives and messages over all ranks form no cycle; nor do they if every
//    rank runs one op at a time in list order
//  - values that share bytes in a placement are ordered by happens-before
//
// Cost: O(ops + edges) per rank; the placement O(pairs of values that share bytes).
#pragma once

#include <string>
#include <vector>

#include "program/placement.h"
#include "program/program.h"

namespace atl {

// All ranks' programs of one island, in rank order. Returns one line per problem: "rank 0: op 7 linear (layer 0,
// micro-batch 0): reads mb0.layer0.norm1, which no op before it writes".
std::vector<std::string> check_programs(const std::vector<Program>& programs);

// One rank's placement. The program must have passed check_programs.
std::vector<std::string> check_placement(const Program& program, const Placement& placement);

}  // namespace atl
