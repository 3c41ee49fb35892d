#include "plena/timing/unit.h"

namespace plena {

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::Matrix:
      return "matrix";
    case Unit::Vector:
      return "vector";
    case Unit::ScalarFp:
      return "scalar fp";
    case Unit::ScalarInt:
      return "scalar int";
    case Unit::LoadM:
      return "load M";
    case Unit::LoadV:
      return "load V";
    case Unit::Store:
      return "store";
    case Unit::Control:
      return "control";
  }
  return "";
}

std::string_view cause_name(Cause cause) {
  switch (cause) {
    case Cause::HbmData:
      return "HBM data";
    case Cause::Register:
      return "register";
    case Cause::SramRange:
      return "SRAM range";
    case Cause::BusyUnit:
      return "busy unit";
    case Cause::FullQueue:
      return "full queue";
    case Cause::Control:
      return "control";
    case Cause::Issue:
      return "issue";
    case Cause::Completion:
      return "completion";
  }
  return "";
}

Unit unit_of(Op op) {
  switch (op) {
    case Op::H_PREFETCH_M:
      return Unit::LoadM;
    case Op::H_PREFETCH_V:
      return Unit::LoadV;
    case Op::H_STORE_V:
      return Unit::Store;
    case Op::S_ADD_INT:
    case Op::S_ADDI_INT:
    case Op::S_SUB_INT:
    case Op::S_MUL_INT:
    case Op::S_LUI_INT:
    case Op::S_LD_INT:
    case Op::S_ST_INT:
      return Unit::ScalarInt;
    default:
      break;
  }
  switch (row_of(op).instruction_class) {
    case InstructionClass::Matrix:
      return Unit::Matrix;
    case InstructionClass::Vector:
      return Unit::Vector;
    case InstructionClass::Control:
      return Unit::Control;
    default:
      return Unit::ScalarFp;
  }
}

}  // namespace plena
