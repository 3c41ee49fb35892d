; A row address has to be a multiple of VLEN: this one stops with a trap.
    LI      gp1, 100
    V_EXP_V gp1, gp0, 0
