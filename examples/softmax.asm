; Softmax of one row of scores.
;
; in:  FP_MEM[0 .. VLEN)   the scores
; out: Vector SRAM row 0   exp(score - max) / sum of them

    S_MAP_V_FP gp0, gp0, 0          ; scores to Vector SRAM row 0

    S_LD_FP    f1, gp0, 0           ; running maximum: start at the first score
    V_RED_MAX  f1, gp0, 0
    V_SUB_VF   gp0, gp0, f1, 0, 0   ; score - max: no exponential overflows
    V_EXP_V    gp0, gp0, 0

    S_ADD_FP   f2, f0, f0           ; sum = 0
    V_RED_SUM  f2, gp0
    S_RECI_FP  f2, f2
    V_MUL_VF   gp0, gp0, f2, 0
