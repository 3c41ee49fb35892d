    S_ADDI_INT gp1, gp0, 262144
    M_MMM 0, gp1, gp2
    V_ADD_VV gp1, gp2, gp3, 2
