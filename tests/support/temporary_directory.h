// A fresh directory that is removed with the object.
#pragma once

#include "core/temporary_directory.h"

namespace atl::test {

class TemporaryDirectory : public atl::TemporaryDirectory {
  public:
    TemporaryDirectory() : atl::TemporaryDirectory("test") {}
};

}  // namespace atl::test
