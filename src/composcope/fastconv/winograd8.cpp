// The transformed convolutions again, with vectors of eight floats: with sixteen, 24 channels are padded to 32. They use
// all registers of a processor that has sixteen. Everything in the namespace has another name here.
#if defined(COMPOSCOPE_LANES) ? COMPOSCOPE_LANES == 16 : defined(__AVX512F__)
#undef COMPOSCOPE_LANES
#define COMPOSCOPE_LANES 8
#define composcope composcope_of_eight
#define composcope_lanes composcope_lanes8
#define composcope_winograd_scratch composcope_winograd8_scratch
#define composcope_winograd_forward composcope_winograd8_forward
#define composcope_winograd_backward composcope_winograd8_backward
#include "winograd.cpp"
#endif
