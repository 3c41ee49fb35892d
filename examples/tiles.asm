; Four rows of activations times 15 tiles of weights, eight times over. While the array works on one
; tile the next is under way, into the other half of Matrix SRAM.
.region setup
        C_SET_ADDR_REG  a1, gp0, gp0
        S_ADDI_INT      gp2, gp0, 65536     ; scales lie behind 16 tiles of 4096 elements
        C_SET_SCALE_REG gp2
        S_ADDI_INT      gp2, gp0, 4096      ; the tile that is loaded
        S_ADDI_INT      gp3, gp0, 0         ; the tile that is multiplied
.endregion

        C_LOOP_START    gp8, 8
.region load
        S_ADDI_INT      gp4, gp0, 0         ; element of HBM
        H_PREFETCH_M    gp3, gp4, a1, 0, 0
.endregion

        C_LOOP_START    gp7, 14
.region load
        S_ADDI_INT      gp4, gp4, 4096
        H_PREFETCH_M    gp2, gp4, a1, 0, 0
.endregion
.region multiply
        S_ADD_INT       gp5, gp3, gp0       ; BLEN columns of the tile
        S_ADDI_INT      gp6, gp0, 4 * VLEN  ; where they go: behind the activations
        C_LOOP_START    gp9, MLEN / BLEN
        M_MM            0, gp5, gp0
        M_MM_WO         gp6, 0, 0
        S_ADDI_INT      gp5, gp5, BLEN
        S_ADDI_INT      gp6, gp6, BLEN
        C_LOOP_END      gp9
.endregion
        S_ADD_INT       gp5, gp3, gp0       ; the two tiles change places
        S_ADD_INT       gp3, gp2, gp0
        S_ADD_INT       gp2, gp5, gp0
        C_LOOP_END      gp7
        C_LOOP_END      gp8
