// Include before <hwy/foreach_target.h>: keeps Highway to the instruction sets with a fused
// multiply-add. Highway's MulAdd on SSE rounds twice, so what has no FMA uses the portable kernels.
// A file that has something better to do with AVX-512 VBMI defines PLENA_HWY_WITH_VBMI before.
#pragma once

#ifdef PLENA_HWY_WITH_VBMI
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif

// Inside a file that foreach_target.h includes once a target: is this one of ours?
#define PLENA_HWY_HAS_FMA \
  (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)
