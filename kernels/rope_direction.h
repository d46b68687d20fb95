// What rope.cpp hands to rope_cpu.cpp: a rotation, or with sine_sign −1 its inverse.
#pragma once

#include "kernels/rope.h"

namespace atl::kernels {

template <class T>
struct DirectedRope {
    Rope<T> rope;
    T sine_sign = 1;
};

}  // namespace atl::kernels
