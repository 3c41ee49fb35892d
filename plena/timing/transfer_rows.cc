#include "plena/timing/transfer_rows.h"

#include <algorithm>

namespace plena {

namespace {

std::uint64_t bursts_of(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  return (address + bytes - 1) / kBurstBytes - address / kBurstBytes + 1;
}

bool burst_ranges_meet(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b,
                       std::uint64_t b_bytes) {
  return a / kBurstBytes <= (b + b_bytes - 1) / kBurstBytes &&
         b / kBurstBytes <= (a + a_bytes - 1) / kBurstBytes;
}

constexpr std::uint64_t kEmulatorBlock = 64;  // bytes; a row's scales are read from one of them

std::uint64_t element_bytes(const TransferRows& rows) {
  const std::uint64_t width = rows.whole_codes ? (rows.width + 7) / 8 * 8 : rows.width;
  return (rows.length * width + 7) / 8;
}

// dialect-plena-rs 6: offsets and strides are bytes used unscaled; the scale index adds two floors,
// the second one of an f32 quotient.
HbmRow row_in_bytes(const TransferRows& rows, std::uint32_t index) {
  HbmRow row{.write = rows.write};
  row.element_address = rows.base + rows.first + index * rows.stride;
  row.element_bytes = element_bytes(rows);
  if (rows.block == 0) return row;
  const std::uint64_t bytes_a_scale = std::uint64_t{rows.width} * rows.block / 8;
  const float distance = static_cast<float>(index) * static_cast<float>(rows.stride) /
                         static_cast<float>(bytes_a_scale);
  row.scale_address =
      rows.base + rows.scale + rows.first / bytes_a_scale + static_cast<std::uint64_t>(distance);
  row.scale_bytes = rows.length / rows.block;
  if (!rows.write) {
    row.scale_bytes =
        std::min(row.scale_bytes, kEmulatorBlock - row.scale_address % kEmulatorBlock);
  }
  return row;
}

}  // namespace

HbmRow TransferRows::row(std::uint32_t index) const {
  if (in_bytes) return row_in_bytes(*this, index);
  const std::uint64_t begin = first + index * stride;
  const std::uint64_t last = begin + length - 1;
  HbmRow row{.write = write};
  row.element_address = base + begin * width / 8;
  row.element_bytes = whole_codes ? element_bytes(*this)
                                  : base + ((last + 1) * width + 7) / 8 - row.element_address;
  if (block != 0) {
    row.scale_address = base + scale + begin / block;
    row.scale_bytes = last / block - begin / block + 1;
  }
  return row;
}

HbmRow TransferRows::extent() const {
  HbmRow all = row(0);
  const HbmRow last = row(count - 1);
  all.element_bytes = last.element_address + last.element_bytes - all.element_address;
  all.scale_bytes = last.scale_address + last.scale_bytes - all.scale_address;
  return all;
}

std::uint32_t TransferRows::uniform_bursts() const {
  const HbmRow head = row(0);
  const std::uint64_t element_bursts = bursts_of(head.element_address, head.element_bytes);
  const std::uint64_t scale_bursts = bursts_of(head.scale_address, head.scale_bytes);
  const auto all = static_cast<std::uint32_t>(element_bursts + scale_bursts);
  if (in_bytes || whole_codes) return 0;
  if (count == 1 && block == 0) return all;

  // Rows of elements are whole bursts apart, so that each meets as many as the first.
  const std::uint64_t step = stride * width / 8;
  if (stride * width % 8 != 0 || first * width % 8 != 0 || step % kBurstBytes != 0) return 0;
  if (block == 0) return step / kBurstBytes == element_bursts - 1 ? 0 : all;

  if (stride % block != 0 || first % block != 0 || length % block != 0) return 0;
  const std::uint64_t scale_step = stride / block;
  const bool inside_one_burst = kBurstBytes % head.scale_bytes == 0 &&
                                head.scale_address % head.scale_bytes == 0 &&
                                scale_step % head.scale_bytes == 0;
  if (!inside_one_burst && scale_step % kBurstBytes != 0) return 0;
  const bool apart =
      !burst_ranges_meet(head.element_address, (count - 1) * step + head.element_bytes,
                         head.scale_address, (count - 1) * scale_step + head.scale_bytes);
  return apart ? all : 0;
}

const DataType& transfer_type(const Settings& s, const Instruction& instruction) {
  const bool second = instruction.order != 0;
  if (instruction.op == Op::H_PREFETCH_M) return second ? s.hbm_m_kv_type : s.hbm_m_weight_type;
  return second ? s.hbm_v_kv_type : s.hbm_v_act_type;
}

TransferRows transfer_rows(const Machine& machine, const Instruction& instruction) {
  const Settings& s = machine.settings;
  const bool matrix = instruction.op == Op::H_PREFETCH_M;
  const DataType& type = transfer_type(s, instruction);
  TransferRows rows;
  rows.base = machine.a[instruction.rs2];
  rows.first = machine.gp[instruction.rs1];
  rows.length = matrix ? s.mlen : s.vlen;
  // Under rs-decode only exactly 1 strides; elsewhere the field is 0 or 1 anyway.
  rows.stride = instruction.select == 1 ? machine.stride : rows.length;
  rows.scale = machine.scale;
  rows.width = type.width();
  rows.block = type.block;
  rows.write = instruction.op == Op::H_STORE_V;
  rows.in_bytes = machine.dialect.has(RsSwitch::HbmBytes);
  rows.whole_codes = rows.write && machine.dialect.has(RsSwitch::Mx);
  rows.count = rows.write ? s.hbm_v_writeback_amount
               : matrix   ? s.hbm_m_prefetch_amount
                          : s.hbm_v_prefetch_amount;
  if (matrix && rows.in_bytes) rows.count = (rows.count + s.mlen - 1) / s.mlen * s.mlen;
  return rows;
}

std::uint64_t bursts_of(const TransferRows& rows) {
  const std::uint64_t uniform = rows.uniform_bursts();
  if (uniform != 0) return uniform * rows.count;
  std::uint64_t bursts = 0;
  for_each_burst(
      rows, [&](std::uint64_t, std::uint32_t) { ++bursts; }, [](std::uint32_t, const HbmRow&) {});
  return bursts;
}

}  // namespace plena
