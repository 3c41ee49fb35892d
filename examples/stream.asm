; A matrix of 16 tiles times a vector, streamed twice from HBM: first one tile after the other, then with
; the next tile on its way while the array works on the one before. For `--timing pipelined --stats`.
;
; in:  HBM 0               16 tiles of MLEN x MLEN weights, their scales behind them
;      Vector SRAM row 0   the part of the vector that every tile is multiplied by
; out: Vector SRAM row 1, row 2   the products, twice the same

.region setup
S_ADDI_INT gp1, gp0, 16 * MLEN * MLEN
C_SET_SCALE_REG gp1
C_SET_ADDR_REG a0, gp0, gp0
S_ADDI_INT gp2, gp0, MLEN * MLEN        ; tile 1 of Matrix SRAM; tile 0 is gp0
.endregion

.region one_by_one
S_ADDI_INT gp3, gp0, 0                  ; the next tile in HBM
C_LOOP_START gp4, 16
  H_PREFETCH_M gp0, gp3, a0, 0, 0
  S_ADDI_INT gp3, gp3, MLEN * MLEN
  M_MV 0, gp0, gp0
C_LOOP_END gp4
M_MV_WO gp0, MLEN
.endregion

.region overlapped
H_PREFETCH_M gp0, gp0, a0, 0, 0
S_ADDI_INT gp3, gp0, MLEN * MLEN
C_LOOP_START gp4, 7
  H_PREFETCH_M gp2, gp3, a0, 0, 0
  S_ADDI_INT gp3, gp3, MLEN * MLEN
  M_MV 0, gp0, gp0
  H_PREFETCH_M gp0, gp3, a0, 0, 0
  S_ADDI_INT gp3, gp3, MLEN * MLEN
  M_MV 0, gp0, gp2
C_LOOP_END gp4
H_PREFETCH_M gp2, gp3, a0, 0, 0
M_MV 0, gp0, gp0
M_MV 0, gp0, gp2
M_MV_WO gp0, 2 * MLEN
.endregion
