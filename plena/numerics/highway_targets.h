// Include before <hwy/foreach_target.h>: keeps Highway to the instruction sets with a fused
// multiply-add. Highway's MulAdd on SSE rounds twice, so what has no FMA uses the portable kernels.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

// Inside a file that foreach_target.h includes once a target: is this one of ours?
#define PLENA_HWY_HAS_FMA (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)
