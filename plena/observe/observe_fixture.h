// For the tests of this room: a small machine and a folder for its files.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "plena/base/files.h"
#include "plena/base/npy.h"
#include "plena/base/scratch_folder.h"
#include "plena/machine/machine.h"

namespace plena {

/// MLEN 16, BLEN 4, HLEN 8, VLEN 16; 2 tiles of Matrix SRAM, 64 rows of Vector SRAM, 1 MiB of HBM.
inline Settings small_settings() {
  Settings settings;
  settings.mlen = 16;
  settings.blen = 4;
  settings.hlen = 8;
  settings.vlen = 16;
  settings.hbm_m_prefetch_amount = 16;
  settings.matrix_sram_size = 32;
  settings.vector_sram_size = 64;
  settings.hbm_size = std::uint64_t{1} << 20;
  settings.int_sram_depth = 32;
  settings.fp_sram_depth = 64;
  return settings;
}

class ObserveTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.file(name); }

  std::string write_raw(const std::string& name, const Bytes& bytes) {
    EXPECT_TRUE(write_file(path(name), bytes));
    return path(name);
  }

  template <class T>
  std::string write_array(const std::string& name, const std::vector<std::uint64_t>& shape,
                          const std::vector<T>& values) {
    EXPECT_TRUE(write_npy<T>(path(name), shape, values));
    return path(name);
  }

  Machine machine_ = std::move(*Machine::create(small_settings()));

 private:
  ScratchFolder scratch_;
};

}  // namespace plena
