#ifndef LOADLINE_CORE_PRICE_RANK_TANH_H_
#define LOADLINE_CORE_PRICE_RANK_TANH_H_

namespace loadline {

// Returns tanh(x) with the very bits that Go's math.Tanh gives on amd64 with FMA, which is what Cluster
// Autoscaler's scores are made of. The C library's differs from it, and between machines.
//
// Cost:   some 20 ns, more where the machine has no FMA; then it is calculated, with the same result.
// Source: Go 1.26, src/math/tanh.go (Cephes) and exp_amd64.s (Shibata's SLEEF, simplified).
double GoTanh(double x);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_RANK_TANH_H_
